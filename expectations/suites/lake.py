"""The tables together: counts that agree with the ledger and with each other, freshness, volume.

The rules check one row of numbers, computed by ``expectations.counts``; unknown numbers are null.
"""

from datetime import timedelta

from expectations.rules import Rule, Severity, between, not_null, zero
from spark_jobs.config.choices import JoinType
from spark_jobs.config.durations import format_duration, milliseconds
from spark_jobs.config.settings import Settings

NAME = "lake"
_UNREPAIRED = " (until a repair changes gold; then a replay compares them)"
FRESHNESS = timedelta(hours=1)
"""How far a table may lag behind its input, beyond what watermarks explain, before the report warns."""


def lake_rules(settings: Settings) -> tuple[Rule, ...]:
    """The rules for the row of counts."""
    return (*_ledger_rules(), *_table_rules(settings.attribute.join), *_freshness_rules(settings), *_volume_rules())


def _ledger_rules() -> tuple[Rule, ...]:
    return (
        not_null(
            "ledger_received",
            "There is a ledger; without one there is nothing to compare the counts with.",
            severity=Severity.WARNING,
        ),
        zero("received_is_accounted_for", "received_difference", "received = ok + quarantined."),
        zero("ok_is_accounted_for", "ok_difference", "ok = kept + duplicates + late."),
        zero("nothing_unaccounted", "unaccounted", "Every accepted record is accounted for."),
        zero("nothing_surplus", "surplus", "Every event in silver comes from a record in bronze."),
        zero(
            "bronze_matches_ledger",
            "bronze_rows_difference",
            "bronze has as many records as the ledger says were received.",
        ),
        zero("ok_matches_ledger", "bronze_ok_difference", "bronze has as many accepted records as the ledger says."),
        zero(
            "requeued_matches_ledger",
            "bronze_requeued_difference",
            "bronze has as many requeued records as the ledger says.",
        ),
        zero(
            "silver_matches_ledger",
            "silver_events_difference",
            "silver has as many events as the ledger says were kept.",
        ),
    )


def _table_rules(join: JoinType) -> tuple[Rule, ...]:
    column = "unattributed_difference"
    if join is JoinType.FULL_OUTER:
        reason = f"Every impression and click in silver is in attributions, or counted as late or pending{_UNREPAIRED}."
        attributed = zero("attributions_match_silver", column, reason)
    else:
        reason = f"attributions has no impression or click that silver lacks; the {join.value} join leaves some out."
        attributed = between("attributions_match_silver", column, reason, minimum=0)
    return (
        attributed,
        zero(
            "sessions_match_silver",
            "unsessioned_difference",
            f"Every event in silver but conversions is in a session, or counted as late or pending{_UNREPAIRED}.",
        ),
        zero(
            "credits_match_paths",
            "credits_difference",
            "The credits of a conversion add up to its value, in each model, where credit is computed.",
        ),
    )


def _freshness_rules(settings: Settings) -> tuple[Rule, ...]:
    attribute, sessionize = settings.attribute, settings.sessionize
    rules = [
        _fresh("silver_is_fresh", "silver_behind_ms", "silver", FRESHNESS, "receipt"),
        _fresh("silver_events_are_fresh", "silver_events_behind_ms", "silver", FRESHNESS, "event"),
        _fresh(
            "sessions_are_fresh",
            "sessions_behind_ms",
            "sessions",
            FRESHNESS + sessionize.watermark + sessionize.gap,
            "event",
        ),
    ]
    if attribute.join is JoinType.FULL_OUTER:
        wait = max(attribute.impression_watermark, attribute.click_watermark) + attribute.window
        rules.append(
            _fresh("attributions_are_fresh", "attributions_behind_ms", "attributions", FRESHNESS + wait, "event")
        )
    return tuple(rules)


def _fresh(name: str, column: str, table: str, allowed: timedelta, what: str) -> Rule:
    reason = f"The newest {what} in {table} is at most {format_duration(allowed)} older than the newest in bronze."
    return between(name, column, reason, maximum=milliseconds(allowed), severity=Severity.WARNING)


def _volume_rules() -> tuple[Rule, ...]:
    warning = Severity.WARNING
    return (
        between("bronze_has_rows", "bronze_rows", "bronze has at least one record.", minimum=1),
        between("silver_has_events", "silver_events", "silver has at least one event.", minimum=1),
        between(
            "attributions_has_rows", "attributions", "attributions has at least one row.", minimum=1, severity=warning
        ),
        between("sessions_has_rows", "sessions", "sessions has at least one row.", minimum=1, severity=warning),
        between(
            "something_new",
            "new_rows",
            "bronze has new records since the last validation.",
            minimum=1,
            severity=warning,
        ),
    )
