"""Fields to a verdict: every record is kept, with the first rule that it breaks."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.contracts import events
from spark_jobs.contracts.sections import IngestSettings
from spark_jobs.contracts.tables import BRONZE_EVENTS
from spark_jobs.transforms import parse

# RFC 3339, with at most microseconds. \z, not $, which allows a line end after it.
_RFC_3339 = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?(?:[Zz]|[+-][0-9]{2}:[0-9]{2})\z"
)
_EPOCH = "1970-01-01 00:00:00"

_Rule = tuple[str, Column]
"""A verdict, and the condition for it."""


def judge(records: DataFrame, settings: IngestSettings) -> DataFrame:
    """Every non-blank record of ``records`` with its verdict and fields.

    Args:
        records: ``raw``, ``source`` (strings), ``ingest_time`` (timestamp: of the batch), ``received_time`` (timestamp:
            when the record was received; its event cannot be later).
        settings: the limits.

    Returns:
        The columns of ``bronze/events``. ``raw`` is as received; if that is not UTF-8, it is decoded as ISO-8859-1, so
        encoding it again gives the original bytes. Fields that belong to another event type are null.
    """
    parsed = parse.parse(parse.drop_blank(records), settings.max_record_bytes)
    judged = parsed.withColumn("time", _time()).withColumn("verdict", _first_broken(_rules(settings)))
    raw = F.when(F.is_valid_utf8("raw"), F.col("raw")).otherwise(F.decode(F.col("raw").cast("binary"), "ISO-8859-1"))
    return judged.withColumns({"raw": raw, **_fields()}).select(*BRONZE_EVENTS.column_names)


def _rules(settings: IngestSettings) -> list[_Rule]:
    malformed = F.col("json").isNull() | F.col("any_type.corrupt").isNotNull()
    not_one_value = ~parse.ends_with_its_only_brace() & ~parse.is_one_value()
    too_late = F.col("received_time") + F.expr(f"INTERVAL {settings.max_future_skew.total_seconds():.3f} SECOND")
    return [
        (events.RECORD_TOO_LARGE, F.col("is_too_large")),
        (events.INVALID_UTF8, ~F.col("is_utf8")),
        (events.NOT_AN_OBJECT, ~parse.is_object() & parse.is_one_value()),
        (events.MALFORMED_JSON, ~parse.is_object() | malformed | not_one_value),
        (events.DUPLICATE_KEY, parse.has_duplicate_key()),
        *_text_rules("event_type", known=events.EVENT_TYPES),
        *_text_rules("event_id"),
        (events.missing("event_time"), F.col("json.event_time").isNull()),
        (events.invalid("event_time"), F.col("time").isNull() | (F.col("time") <= F.lit(_EPOCH).cast("timestamp"))),
        (events.EVENT_TIME_IN_FUTURE, F.col("time") > too_late),
        *_text_rules("user_id"),
        (events.invalid("is_last"), _is_of_other_type("is_last", "BOOLEAN")),
        *_of_type(events.IMPRESSION, [*_text_rules("campaign_id"), *_text_rules("ad_id"), _cost_rule()]),
        *_of_type(events.CLICK, _text_rules("impression_id")),
        *_of_type(events.ACTIVITY, [(events.invalid("data"), ~parse.is_text("data"))]),
    ]


def _text_rules(field: str, known: tuple[str, ...] | None = None) -> list[_Rule]:
    value = F.col(f"json.{field}")
    if known:
        return [(events.missing(field), value.isNull()), (events.invalid(field), ~value.isin(*known))]
    has_length = F.char_length(value).between(1, events.MAX_ID_CHARACTERS)
    is_id = has_length & ~F.contains(value, F.lit("\0")) & parse.is_text(field)
    return [(events.missing(field), value.isNull()), (events.invalid(field), ~is_id)]


def _time() -> Column:
    text = F.col("json.event_time")
    # RFC 3339 allows both cases, Spark only one. Not upper(): it loads Unicode tables, which takes seconds.
    upper = F.when(text.rlike("[tz]"), F.translate(text, "tz", "TZ")).otherwise(text)
    return F.when(text.rlike(_RFC_3339), upper.try_cast("timestamp"))


def _cost_rule() -> _Rule:
    is_negative = F.col("json.cost_micros") < 0
    return (events.invalid("cost_micros"), is_negative | _is_of_other_type("cost_micros", "BIGINT"))


def _of_type(event_type: str, rules: list[_Rule]) -> list[_Rule]:
    is_type = F.col("json.event_type") == event_type
    return [(verdict, is_type & broken) for verdict, broken in rules]


def _is_of_other_type(field: str, kind: str) -> Column:
    """Whether ``field`` is present, not null, and not of the JSON type ``kind``."""
    is_right = F.schema_of_variant(f"any_type.{field}").isin(kind, "VOID")
    return ~F.coalesce(is_right, F.lit(True))


def _first_broken(rules: list[_Rule]) -> Column:
    (verdict, broken), *rest = rules
    chain = F.when(broken, F.lit(verdict))
    for verdict, broken in rest:
        chain = chain.when(broken, F.lit(verdict))
    return chain.otherwise(F.lit(events.OK))


def _fields() -> dict[str, Column]:
    """The parsed fields; if the record is not ok, as many as could be read."""
    fields = {name: F.col(f"json.{name}") for name in parse.TEXT_FIELDS}
    fields["event_time"] = F.col("time")
    fields["is_last"] = F.coalesce("json.is_last", F.lit(False))
    fields["cost_micros"] = F.coalesce("json.cost_micros", F.lit(0))
    for event_type, names in events.TYPE_FIELDS.items():
        for name in names:
            fields[name] = F.when(F.col("json.event_type") == event_type, fields[name])
    return fields
