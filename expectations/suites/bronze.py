"""bronze/events: every record as received, with its verdict."""

from datetime import timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from expectations.rules import Rule, RuleKind, Severity, between, in_set, length, not_null
from expectations.suites.base import Suite
from spark_jobs.config.durations import format_duration, microseconds
from spark_jobs.config.settings import Settings
from spark_jobs.contract.events import EVENT_TYPES, MAX_ID_CHARACTERS, OK, VERDICTS
from spark_jobs.contract.tables import BRONZE_EVENTS

ACCEPTED_SHARE = 0.95
"""The share of records that must be ok before the report warns."""
KNOWN_USERS_SHARE = 0.1
"""The share of records that must have a user before the report warns. Low, because most people may refuse consent."""

_OK_ROWS = f"verdict = '{OK}'"


def suite(settings: Settings) -> Suite:
    """The rules for bronze."""
    return Suite(
        BRONZE_EVENTS,
        (
            *_record_rules(),
            *_accepted_rules(settings.ingest.max_future_skew),
            *_user_rules(settings),
            *_requeue_rules(),
        ),
        _prepare,
    )


def _record_rules() -> tuple[Rule, ...]:
    return (
        not_null("raw", "What is in quarantine keeps its raw text as received.", f"verdict <> '{OK}'"),
        not_null("source", "Every record has its source, so that it can be traced back."),
        not_null("ingest_time", "Every record has its time of receipt."),
        not_null("verdict", "Every record has a verdict."),
        in_set("verdict", VERDICTS, "The verdict is ok or names a rule of the event contract."),
        Rule(
            "quarantined_share",
            RuleKind.IN_SET,
            "verdict",
            f"At most {1 - ACCEPTED_SHARE:.0%} of records are quarantined; more means a source is broken.",
            "requeued_from IS NULL",
            values=(OK,),
            mostly=ACCEPTED_SHARE,
            severity=Severity.WARNING,
        ),
    )


def _accepted_rules(skew: timedelta) -> tuple[Rule, ...]:
    return (
        not_null("event_type", "An accepted record has an event type.", _OK_ROWS),
        in_set("event_type", EVENT_TYPES, "An accepted record has a known event type.", _OK_ROWS),
        not_null("event_id", "An accepted record has an id, by which duplicates are recognized.", _OK_ROWS),
        length("event_id", 1, MAX_ID_CHARACTERS, f"event_id has 1 to {MAX_ID_CHARACTERS} characters.", _OK_ROWS),
        length("user_id", 1, MAX_ID_CHARACTERS, f"user_id has 1 to {MAX_ID_CHARACTERS} characters.", _OK_ROWS),
        not_null("event_time", "An accepted record has an event time.", _OK_ROWS),
        between(
            "event_time_not_in_future",
            "ahead_of_receipt_us",
            f"No accepted event is dated more than {format_duration(skew)} after its receipt: "
            "one wrong clock would push the watermark past all later data.",
            maximum=microseconds(skew),
            when=_OK_ROWS,
        ),
    )


def _user_rules(settings: Settings) -> tuple[Rule, ...]:
    if settings.has_userless_source:
        return ()
    if not settings.may_lack_user:
        return (not_null("user_id", "An accepted record has a user id.", _OK_ROWS),)
    return (
        Rule(
            "known_users_share",
            RuleKind.NOT_NULL,
            "user_id",
            f"At most {1 - KNOWN_USERS_SHARE:.0%} of records are accepted with an id that means nobody "
            "(ingest.nobody); more means that the user is read from the wrong place.",
            _OK_ROWS,
            mostly=KNOWN_USERS_SHARE,
            severity=Severity.WARNING,
        ),
    )


def _requeue_rules() -> tuple[Rule, ...]:
    is_requeued = "requeued_from IS NOT NULL"
    return (
        Rule("requeued_is_ok", RuleKind.IN_SET, "verdict", "Only records that fit are requeued.", is_requeued, (OK,)),
        between(
            "requeued_after_receipt",
            "requeued_after_us",
            "A record is requeued after it was received.",
            minimum=1,
            when=is_requeued,
        ),
    )


def _prepare(rows: DataFrame, _whole: DataFrame | None) -> DataFrame:
    # A lake of an older version lacks some.
    lacking = [column for column in BRONZE_EVENTS.columns if column.name not in rows.columns]
    complete = rows.withColumns({column.name: F.lit(None).cast(column.sql_type) for column in lacking})
    received = F.unix_micros(F.coalesce("requeued_from", "ingest_time"))
    return complete.withColumns(
        {
            "ahead_of_receipt_us": F.unix_micros("event_time") - received,
            "requeued_after_us": F.unix_micros("ingest_time") - F.unix_micros("requeued_from"),
        }
    )
