"""Raw text to typed fields: strict RFC 8259, one pass of Spark's JSON parser.

Spark's parser is too lenient for data that money depends on: it reads only the first value of a line, takes the first
element of an array as the record, accepts ``true`` and ``{"a": 1}`` for text, and lets the last of two equal keys win.
The columns added here flag such records, so that :mod:`spark_jobs.ingest.judge` can reject them.
"""

from functools import reduce
from operator import add

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.config.sources import FIELDS
from spark_jobs.contract.events import MICROS, RECORD_TOO_LARGE
from spark_jobs.ingest import decode

OTHER_TYPES = {"is_last": "BOOLEAN", **dict.fromkeys(MICROS, "BIGINT")}
"""The fields of adloom's own format that are no text, with their types."""
TEXT_FIELDS = tuple(name for name in FIELDS if name not in OTHER_TYPES)
_FIELD_TYPES = dict.fromkeys(TEXT_FIELDS, "STRING") | OTHER_TYPES
_SCHEMA = ", ".join(f"{name} {sql_type}" for name, sql_type in _FIELD_TYPES.items()) + ", corrupt STRING"
_ANY_TYPE_SCHEMA = ", ".join(f"{name} VARIANT" for name in OTHER_TYPES) + ", corrupt STRING"
_STRICT = {
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": "corrupt",
    "allowSingleQuotes": "false",
    "allowNonNumericNumbers": "false",
}
TO_PARSE = "to_parse"
"""The column with the JSON text of a record, null if it must not be parsed."""
IS_DECODED = "is_decoded"
"""The column with whether a record is not JSON; not there if all are."""
_WHITESPACE = " \t\r"
_BYTE_ORDER_MARK = "\ufeff"

# Text that Spark may have converted from a boolean, object, array or fraction. Only then its type is looked up. A
# number is matched to its end, because every IPv4 address begins like one. One beyond a double has become "Infinity",
# with the quotes.
_PERHAPS_NOT_TEXT = (
    r'^(?:true\z|false\z|"-?Infinity"\z|[\[{]|-?[0-9]+(?:\.[0-9]+(?:[eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+)\z)'
)


def drop_blank(records: DataFrame) -> DataFrame:
    """Drops blank ones of ``records`` (``raw`` and more).

    Returns:
        The columns of ``records``, and ``text``: what :func:`spark_jobs.ingest.decode.decode` gave, or else ``raw``
        without white space around it.
    """
    # Trimming costs a quarter as much as parsing, and hardly any record needs it.
    is_trim = F.startswith(F.col("raw"), F.lit("{")) & F.endswith(F.col("raw"), F.lit("}"))
    bare = trimmed(F.col("raw"))
    has_mark = F.startswith(bare, F.lit(_BYTE_ORDER_MARK))
    text = F.when(is_trim, F.col("raw")).when(has_mark, F.substr(bare, F.lit(2))).otherwise(bare)
    if decode.VERDICT not in records.columns:
        return records.withColumn("text", text).where(F.col("text") != "")
    is_decoded = F.col(decode.TEXT).isNotNull() | F.col(decode.VERDICT).isNotNull()
    marked = records.withColumns({IS_DECODED: is_decoded, "text": F.coalesce(decode.TEXT, text)})
    return marked.where(F.col(IS_DECODED) | (F.col("text") != ""))


def trimmed(text: Column) -> Column:
    """``text`` without white space around it, as it stands around a record."""
    return F.btrim(text, F.lit(_WHITESPACE))


def measure(records: DataFrame, max_record_bytes: int) -> DataFrame:
    """Looks at the bytes of ``records``.

    Args:
        records: ``raw``, ``text`` and more.
        max_record_bytes: longer records are not parsed.

    Returns:
        The columns of ``records``, and ``is_too_large``, ``is_utf8``: booleans; ``to_parse``: the text if it is to be
        parsed.
    """
    measured = records.withColumns(
        {
            "is_too_large": _is_too_large(records, max_record_bytes),
            "is_utf8": _is_utf8(records) & ~_has_lone_surrogate(),
        }
    )
    is_good = ~F.col("is_too_large") & F.col("is_utf8")
    if IS_DECODED in records.columns:
        is_good &= F.col(decode.VERDICT).isNull()
    return measured.withColumn(TO_PARSE, F.when(is_good, F.col("text")))


def add_keys(records: DataFrame, *, all_own: bool) -> DataFrame:
    """Adds ``keys``: the keys of the root object in order; null if there is no object.

    Args:
        records: from :func:`measure` or :func:`parse`.
        all_own: all records are in adloom's own format. Keys are then null too where none can be there twice.
    """
    keys = F.json_object_keys(TO_PARSE)
    return records.withColumn("keys", F.when(~_has_only_known_keys(), keys) if all_own else keys)


def _has_only_known_keys() -> Column:
    """Whether each key of a record in adloom's own format is that of a field with a value, so that none is there twice.

    It may be false for such a record, and hardly ever is. It takes a third of the time of parsing the keys: each key is
    followed by a colon, so if there are no more colons than fields with a value and colons in ``event_time``, each key
    has one of these fields. An escape could stand for a colon.
    """
    time = F.col("json.event_time")
    known = reduce(add, _are_given()) + _colons(time)
    has_escape = F.contains(F.col("text"), F.lit("\\"))
    return F.coalesce(~has_escape & (_colons(F.col("text")) == known), F.lit(False))


def _colons(text: Column) -> Column:
    return F.octet_length(text) - F.octet_length(F.replace(text, F.lit(":"), F.lit("")))


def _are_given() -> list[Column]:
    """For each field of the own format, 1 if it has a value, or else 0."""
    return [F.col(f"json.{name}").isNotNull().cast("int") for name in _FIELD_TYPES]


def _is_utf8(records: DataFrame) -> Column:
    is_utf8 = F.is_valid_utf8("raw")
    # The bytes of a record that is not JSON need not be text.
    return is_utf8 | F.col(IS_DECODED) if IS_DECODED in records.columns else is_utf8


def _is_too_large(records: DataFrame, max_record_bytes: int) -> Column:
    is_too_large = F.octet_length("raw") > max_record_bytes
    if IS_DECODED not in records.columns:
        return is_too_large
    # Text and raw are not what was received; that was measured when it was decoded.
    is_refused = F.coalesce(F.col(decode.VERDICT) == RECORD_TOO_LARGE, F.lit(False))
    return F.when(F.col(IS_DECODED), is_refused).otherwise(is_too_large)


def parse(records: DataFrame, is_own: Column | None) -> DataFrame:
    """Parses ``records`` in adloom's own format.

    Args:
        records: from :func:`measure`.
        is_own: which records may be in that format; None: all.

    Returns:
        The columns of ``records``, and
        ``json``: struct of the text fields, those of :data:`OTHER_TYPES` and ``corrupt``, which is not null if the text
        is not JSON or one of the latter has another type; null if the text was not parsed;
        ``any_type``: for corrupt records only, the fields of :data:`OTHER_TYPES` as variants, and ``corrupt``, which is
        not null if the text is not JSON.
    """
    own = F.col(TO_PARSE) if is_own is None else F.when(is_own, F.col(TO_PARSE))
    parsed = records.withColumn("json", F.from_json(own, _SCHEMA, _STRICT))
    any_type = F.when(F.col("json.corrupt").isNotNull(), F.from_json("text", _ANY_TYPE_SCHEMA, _STRICT))
    return parsed.withColumn("any_type", any_type)


def is_object() -> Column:
    """Whether ``text`` starts like a JSON object."""
    return F.startswith(F.col("text"), F.lit("{"))


def is_one_value() -> Column:
    """Whether ``text`` is exactly one JSON value.

    One value adds exactly one element to an array, whatever follows it. One length is not enough: text that closes
    the array early gives the same length with either tail.
    """
    is_alone = (_length_as_array(",0]") == 2) & (_length_as_array(",0,0]") == 3)  # noqa: PLR2004 itself and the zeros
    return F.try_parse_json("text").isNotNull() & F.coalesce(is_alone, F.lit(False))


def ends_with_its_only_brace() -> Column:
    """Whether the first closing brace is the last character, so that nothing can follow the object."""
    return F.octet_length(F.substring_index("text", "}", 1)) + 1 == F.octet_length("text")


def is_malformed() -> Column:
    """Whether a record that looks like an object in adloom's own format is not exactly one JSON object."""
    is_no_json = F.col("json").isNull() | F.col("any_type.corrupt").isNotNull()
    return is_no_json | (~ends_with_its_only_brace() & ~is_one_value())


def has_key_twice() -> Column:
    """Whether the root object has a key twice; false if there is no root object."""
    return F.coalesce(F.size("keys") != F.size(F.array_distinct("keys")), F.lit(False))


def has_duplicate_key() -> Column:
    """Whether the root object of a record in adloom's own format has a key twice."""
    # If there are as many keys as fields with a value, each occurs once and there is no need to compare them.
    has_others = F.size("keys") != reduce(add, _are_given())
    return F.coalesce(has_others, F.lit(False)) & has_key_twice()


def is_text(field: str) -> Column:
    """Whether the value of ``field`` was a JSON string or integer; null if it is absent."""
    variant = F.try_parse_json("text")
    kind = F.schema_of_variant(F.try_variant_get(variant, f"$.{field}", "variant"))
    return is_text_of(F.col(f"json.{field}"), kind)


def is_text_of(value: Column, kind: Column) -> Column:
    """Whether the text ``value`` was a string or integer, given its ``kind`` in a variant; null if it is absent."""
    return F.when(value.rlike(_PERHAPS_NOT_TEXT), kind == "STRING").when(value.isNotNull(), F.lit(True))


def _length_as_array(tail: str) -> Column:
    return F.json_array_length(F.concat(F.lit("["), F.col("text"), F.lit(tail)))


def _has_lone_surrogate() -> Column:
    r"""Whether there is an escape such as \ud800 without its other half: it is no character and cannot be stored."""
    escapes = F.regexp_replace("text", r"\\\\", "")
    unpaired = F.regexp_replace(escapes, r"(?i)\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}", "")
    has_surrogate = F.contains(F.col("text"), F.lit("\\ud")) | F.contains(F.col("text"), F.lit("\\uD"))
    return F.when(has_surrogate, unpaired.rlike(r"(?i)\\ud[89a-f]")).otherwise(F.lit(False))
