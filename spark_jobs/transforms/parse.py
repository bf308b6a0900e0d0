"""Raw text to typed fields: strict RFC 8259, one pass of Spark's JSON parser.

Spark's parser is lenient where money is counted: it reads only the first value of a line, takes the first element of
an array for the record, accepts ``true`` and ``{"a": 1}`` where text is due, and lets the last of two equal keys win.
The columns made here say where that happened, so that :mod:`spark_jobs.transforms.validate` can judge it.
"""

from functools import reduce
from operator import add

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

TEXT_FIELDS = ("event_type", "event_id", "event_time", "user_id", "campaign_id", "ad_id", "impression_id", "data")
_FIELD_TYPES = dict.fromkeys(TEXT_FIELDS, "STRING") | {"is_last": "BOOLEAN", "cost_micros": "BIGINT"}
_SCHEMA = ", ".join(f"{name} {sql_type}" for name, sql_type in _FIELD_TYPES.items()) + ", corrupt STRING"
_ANY_TYPE_SCHEMA = "is_last VARIANT, cost_micros VARIANT, corrupt STRING"
_STRICT = {
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": "corrupt",
    "allowSingleQuotes": "false",
    "allowNonNumericNumbers": "false",
}
_WHITESPACE = " \t\r"
_BYTE_ORDER_MARK = "\ufeff"

# A text that Spark may have made of a boolean, an object, an array or a fraction: only then is the type looked up.
_PERHAPS_NOT_TEXT = r"^(?:true\z|false\z|[\[{]|-?[0-9]+[.eE])"


def drop_blank(records: DataFrame) -> DataFrame:
    """``records`` (``raw`` and more) without the blank ones, and with ``text``: ``raw`` trimmed of white space."""
    # Trimming costs as much as a quarter of the parse, and nearly no record needs it.
    is_trim = F.startswith(F.col("raw"), F.lit("{")) & F.endswith(F.col("raw"), F.lit("}"))
    trimmed = F.btrim("raw", F.lit(_WHITESPACE))
    has_mark = F.startswith(trimmed, F.lit(_BYTE_ORDER_MARK))
    text = F.when(is_trim, F.col("raw")).when(has_mark, F.substr(trimmed, F.lit(2))).otherwise(trimmed)
    return records.withColumn("text", text).where(F.col("text") != "")


def parse(records: DataFrame, max_record_bytes: int) -> DataFrame:
    """``records`` with what its text says.

    Args:
        records: ``raw``, ``text`` and more.
        max_record_bytes: longer records are not parsed.

    Returns:
        The columns of ``records`` and
        ``is_too_large``, ``is_utf8``: booleans;
        ``json``: struct of the text fields, ``is_last`` (boolean), ``cost_micros`` (bigint), and ``corrupt``, which is
        not null where the text is not JSON or one of these two has another type; null where the text is not parsed;
        ``any_type``: of the corrupt ones only, ``is_last`` and ``cost_micros`` as variants, and ``corrupt``, which is
        not null where the text is not JSON;
        ``keys``: the keys of the root object, in order, null where there is none.
    """
    to_parse = F.when(~F.col("is_too_large") & F.col("is_utf8"), F.col("text"))
    parsed = records.withColumns(
        {
            "is_too_large": F.octet_length("raw") > max_record_bytes,
            "is_utf8": F.is_valid_utf8("raw") & ~_has_lone_surrogate(),
        }
    ).withColumns({"json": F.from_json(to_parse, _SCHEMA, _STRICT), "keys": F.json_object_keys(to_parse)})
    any_type = F.when(F.col("json.corrupt").isNotNull(), F.from_json("text", _ANY_TYPE_SCHEMA, _STRICT))
    return parsed.withColumn("any_type", any_type)


def is_object() -> Column:
    """Whether ``text`` begins as a JSON object does."""
    return F.startswith(F.col("text"), F.lit("{"))


def is_one_value() -> Column:
    """Whether ``text`` is exactly one JSON value.

    As an element of an array it adds exactly one element, whatever follows it. Both lengths are needed: a text that
    closes the array early gives the same length with either tail.
    """
    is_alone = (_length_as_array(",0]") == 2) & (_length_as_array(",0,0]") == 3)  # noqa: PLR2004 itself and the zeros
    return F.try_parse_json("text").isNotNull() & F.coalesce(is_alone, F.lit(False))


def ends_with_its_only_brace() -> Column:
    """Whether the first closing brace is the last character: then nothing can follow the object."""
    return F.octet_length(F.substring_index("text", "}", 1)) + 1 == F.octet_length("text")


def has_duplicate_key() -> Column:
    """Whether a key of the root object stands there twice."""
    # Where there are as many keys as fields with a value, each is there once: no need to compare them.
    fields = [F.col(f"json.{name}").isNotNull().cast("int") for name in _FIELD_TYPES]
    has_others = F.size("keys") != reduce(add, fields)
    return has_others & (F.size("keys") != F.size(F.array_distinct("keys")))


def is_text(field: str) -> Column:
    """Whether the value of ``field`` was a JSON string or integer; null where it is absent."""
    kind = F.schema_of_variant(F.try_variant_get(F.try_parse_json("text"), f"$.{field}", "variant"))
    value = F.col(f"json.{field}")
    return F.when(value.rlike(_PERHAPS_NOT_TEXT), kind == "STRING").when(value.isNotNull(), F.lit(True))


def _length_as_array(tail: str) -> Column:
    return F.json_array_length(F.concat(F.lit("["), F.col("text"), F.lit(tail)))


def _has_lone_surrogate() -> Column:
    r"""Whether an escape such as \ud800 stands without its other half: it names no character and cannot be kept."""
    escapes = F.regexp_replace("text", r"\\\\", "")
    unpaired = F.regexp_replace(escapes, r"(?i)\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}", "")
    has_surrogate = F.contains(F.col("text"), F.lit("\\ud")) | F.contains(F.col("text"), F.lit("\\uD"))
    return F.when(has_surrogate, unpaired.rlike(r"(?i)\\ud[89a-f]")).otherwise(F.lit(False))
