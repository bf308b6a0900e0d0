"""Raw text to typed fields: strict RFC 8259, one pass of Spark's JSON parser.

Spark's parser is too lenient for data that money depends on: it reads only the first value of a line, takes the first
element of an array as the record, accepts ``true`` and ``{"a": 1}`` for text, and lets the last of two equal keys win.
The columns added here flag such records, so that :mod:`spark_jobs.transforms.validate` can reject them.
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

# Text that Spark may have converted from a boolean, object, array or fraction. Only then its type is looked up.
_PERHAPS_NOT_TEXT = r"^(?:true\z|false\z|[\[{]|-?[0-9]+[.eE])"


def drop_blank(records: DataFrame) -> DataFrame:
    """Drops blank ones of ``records`` (``raw`` and more), and adds ``text``: ``raw`` without white space around it."""
    # Trimming costs a quarter as much as parsing, and hardly any record needs it.
    is_trim = F.startswith(F.col("raw"), F.lit("{")) & F.endswith(F.col("raw"), F.lit("}"))
    trimmed = F.btrim("raw", F.lit(_WHITESPACE))
    has_mark = F.startswith(trimmed, F.lit(_BYTE_ORDER_MARK))
    text = F.when(is_trim, F.col("raw")).when(has_mark, F.substr(trimmed, F.lit(2))).otherwise(trimmed)
    return records.withColumn("text", text).where(F.col("text") != "")


def parse(records: DataFrame, max_record_bytes: int) -> DataFrame:
    """Parses the text of ``records``.

    Args:
        records: ``raw``, ``text`` and more.
        max_record_bytes: longer records are not parsed.

    Returns:
        The columns of ``records``, and
        ``is_too_large``, ``is_utf8``: booleans;
        ``json``: struct of the text fields, ``is_last`` (boolean), ``cost_micros`` (bigint) and ``corrupt``, which is
        not null if the text is not JSON or one of these two has another type; null if the text was not parsed;
        ``any_type``: for corrupt records only, ``is_last`` and ``cost_micros`` as variants, and ``corrupt``, which is
        not null if the text is not JSON;
        ``keys``: the keys of the root object in order; null if there is no object.
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
    """Whether ``text`` starts like a JSON object."""
    return F.startswith(F.col("text"), F.lit("{"))


def is_one_value() -> Column:
    """Whether ``text`` is exactly one JSON value.

    One value adds exactly one element to an array, whatever follows it. It takes two lengths to tell: text that closes
    the array early gives the same length with either tail.
    """
    is_alone = (_length_as_array(",0]") == 2) & (_length_as_array(",0,0]") == 3)  # noqa: PLR2004 itself and the zeros
    return F.try_parse_json("text").isNotNull() & F.coalesce(is_alone, F.lit(False))


def ends_with_its_only_brace() -> Column:
    """Whether the first closing brace is the last character, so that nothing can follow the object."""
    return F.octet_length(F.substring_index("text", "}", 1)) + 1 == F.octet_length("text")


def has_duplicate_key() -> Column:
    """Whether the root object has a key twice."""
    # If there are as many keys as fields with a value, each occurs once and there is no need to compare them.
    fields = [F.col(f"json.{name}").isNotNull().cast("int") for name in _FIELD_TYPES]
    has_others = F.size("keys") != reduce(add, fields)
    return has_others & (F.size("keys") != F.size(F.array_distinct("keys")))


def is_text(field: str) -> Column:
    """Whether the value of ``field`` was a JSON string or integer; null if it is absent."""
    kind = F.schema_of_variant(F.try_variant_get(F.try_parse_json("text"), f"$.{field}", "variant"))
    value = F.col(f"json.{field}")
    return F.when(value.rlike(_PERHAPS_NOT_TEXT), kind == "STRING").when(value.isNotNull(), F.lit(True))


def _length_as_array(tail: str) -> Column:
    return F.json_array_length(F.concat(F.lit("["), F.col("text"), F.lit(tail)))


def _has_lone_surrogate() -> Column:
    r"""Whether there is an escape such as \ud800 without its other half: it is no character and cannot be stored."""
    escapes = F.regexp_replace("text", r"\\\\", "")
    unpaired = F.regexp_replace(escapes, r"(?i)\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}", "")
    has_surrogate = F.contains(F.col("text"), F.lit("\\ud")) | F.contains(F.col("text"), F.lit("\\uD"))
    return F.when(has_surrogate, unpaired.rlike(r"(?i)\\ud[89a-f]")).otherwise(F.lit(False))
