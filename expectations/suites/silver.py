"""silver/events: each event once, plus heartbeat rows."""

from datetime import timedelta
from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from expectations.rules import Rule, between, in_set, length, not_null, unique, zero
from expectations.suites.base import Suite, count_true, days_difference, with_repeats
from spark_jobs.config.durations import ROUNDING, microseconds
from spark_jobs.config.settings import Settings
from spark_jobs.contract.events import (
    CLICK,
    CONVERSION,
    CURRENCY_CHARACTERS,
    EVENT_TYPES,
    HEARTBEAT,
    ID_FIELDS,
    IMPRESSION,
    KEY,
    MAX_ID_CHARACTERS,
    TEXT_LIMITS,
    TYPE_FIELDS,
)
from spark_jobs.contract.tables import SILVER_EVENTS
from spark_jobs.queries.identity import delay_of

_EVENTS = f"event_type <> '{HEARTBEAT}'"
_IMPRESSIONS = f"event_type = '{IMPRESSION}'"
_CLICKS = f"event_type = '{CLICK}'"
_CONVERSIONS = f"event_type = '{CONVERSION}'"
_ID_LENGTH = f"Ids have 1 to {MAX_ID_CHARACTERS} characters."


def suite(settings: Settings) -> Suite:
    """The rules for silver."""
    return Suite(
        SILVER_EVENTS,
        (*_event_rules(), *_user_rules(settings), *_type_rules(), *_conversion_rules()),
        partial(_prepare, delay=delay_of(settings.deduplicate)),
    )


def _event_rules() -> tuple[Rule, ...]:
    return (
        unique("event_unique", "event_occurrences", "Each event, by type, id and time, appears once.", _EVENTS),
        not_null("event_type", "Every row has an event type."),
        in_set("event_type", (*EVENT_TYPES, HEARTBEAT), "A row is an event of a known type or a heartbeat."),
        not_null("event_time", "Every row has an event time; without one it would stay in state for ever."),
        not_null("event_date", "Every row has its partition date."),
        zero("event_date_matches", "event_date_days_difference", "event_date is the UTC date of event_time."),
        not_null("event_id", "Every event has an id.", _EVENTS),
        not_null("is_last", "Every event says whether it ends its session; the default is false.", _EVENTS),
        not_null("ingest_time", "Every event has its time of receipt.", _EVENTS),
        *(length(column, 1, MAX_ID_CHARACTERS, _ID_LENGTH) for column in ID_FIELDS),
        *(length(column, 1, most, f"{column} has 1 to {most:,} characters.") for column, most in TEXT_LIMITS.items()),
    )


def _user_rules(settings: Settings) -> tuple[Rule, ...]:
    return () if settings.may_lack_user else (not_null("user_id", "Every event has a user id.", _EVENTS),)


def _type_rules() -> tuple[Rule, ...]:
    return (
        not_null("campaign_id", "An impression has a campaign.", _IMPRESSIONS),
        not_null("ad_id", "An impression has an ad.", _IMPRESSIONS),
        between("cost_micros_not_negative", "cost_micros", "A cost is never negative.", minimum=0),
        not_null("impression_id", "A click has the id of its impression.", _CLICKS),
        zero("no_foreign_fields", "foreign_fields", "An event has no field that belongs to another event type."),
        zero("heartbeats_are_empty", "heartbeat_fields", "A heartbeat has a time and no event data."),
    )


def _conversion_rules() -> tuple[Rule, ...]:
    code = f"A currency is a code of {CURRENCY_CHARACTERS} letters."
    return (
        not_null("conversion_type", "A conversion says what the user did.", _CONVERSIONS),
        not_null("value_micros", "A conversion has a value, which may be 0.", _CONVERSIONS),
        between("value_micros_not_negative", "value_micros", "A value is never negative.", minimum=0),
        not_null("currency", "A value that is not 0 has a currency.", f"{_CONVERSIONS} AND value_micros > 0"),
        length("currency", CURRENCY_CHARACTERS, CURRENCY_CHARACTERS, code),
        zero("no_conversion_revokes_itself", "revokes_itself", "A conversion revokes another one, if any."),
    )


def _copies(delay: timedelta | None) -> Column | None:
    """One more than the pairs of neighbours among the rows of an id that are one event; None: all of them are."""
    if delay is None:
        return None
    times = F.array_sort(F.collect_list(F.unix_micros("event_time")))
    # A watermark has whole milliseconds. Rows of one time are copies whatever it is.
    longest = F.lit(microseconds(max(delay - ROUNDING, timedelta())))
    apart = F.zip_with(times, F.slice(times, 2, F.size(times)), lambda one, after: after - one)
    return F.size(F.filter(apart, lambda us: us <= longest)) + 1


def _prepare(rows: DataFrame, whole: DataFrame | None, delay: timedelta | None) -> DataFrame:
    is_heartbeat = F.col("event_type") == HEARTBEAT
    foreign = [
        (F.col("event_type") != owner) & ~is_heartbeat & F.col(field).isNotNull()
        for owner, fields in TYPE_FIELDS.items()
        for field in fields
    ]
    filled = [
        is_heartbeat & F.col(field).isNotNull()
        for field in ("user_id", *TEXT_LIMITS, *(f for fs in TYPE_FIELDS.values() for f in fs))
    ]
    return with_repeats(rows, whole, list(KEY), "event_occurrences", near=_copies(delay)).withColumns(
        {
            "event_date_days_difference": days_difference(F.col("event_time")),
            "foreign_fields": count_true(*foreign),
            "heartbeat_fields": count_true(*filled),
            "revokes_itself": count_true(F.col("revokes") == F.col("event_id")),
        }
    )
