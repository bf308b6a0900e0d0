"""gold/sessions: each user's events, grouped into sessions."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from expectations.rules import Rule, between, in_set, not_null, unique, zero
from expectations.suites.base import Suite, count_true, days_difference, with_repeats
from spark_jobs.config.durations import format_duration, microseconds
from spark_jobs.config.settings import Settings
from spark_jobs.contract.events import SESSION_ENDINGS, VISIT_TYPES
from spark_jobs.contract.tables import SESSIONS

_COUNTS = tuple(f"{event_type}_count" for event_type in VISIT_TYPES)


def suite(settings: Settings) -> Suite:
    """The rules for sessions."""
    gap = settings.sessionize.gap
    gap_rule = between(
        "gaps_within_session_gap",
        "widest_gap_us",
        f"No two neighbouring events of a session are more than the session gap of {format_duration(gap)} apart.",
        maximum=microseconds(gap),
    )
    return Suite(SESSIONS, (*_row_rules(), *_event_rules(), gap_rule), _prepare)


def _row_rules() -> tuple[Rule, ...]:
    return (
        not_null("session_id", "Every session has an id."),
        unique("session_unique", "session_occurrences", "A session appears once: session_id is unique."),
        not_null("user_id", "Every session has a user id."),
        not_null("session_start", "Every session has a start."),
        not_null("session_end", "Every session has an end."),
        between("ends_after_start", "duration_us", "A session never ends before it starts.", minimum=0),
        between(
            "no_overlap",
            "until_nearest_session_us",
            "A user's sessions never overlap: each starts no earlier than the previous one ends.",
            minimum=0,
        ),
        not_null("ended_by", "Every session has a reason for its end."),
        in_set("ended_by", SESSION_ENDINGS, "A session ends by is_last or by silence (timeout)."),
        not_null("event_date", "Every session has its partition date."),
        zero("event_date_matches", "event_date_days_difference", "event_date is the UTC date of session_start."),
    )


def _event_rules() -> tuple[Rule, ...]:
    return (
        between("event_count_positive", "event_count", "A session has at least one event.", minimum=1),
        zero("no_missing_counts", "missing_counts", "Every session has its events and all its counts."),
        zero("counts_add_up", "count_difference", "event_count is the sum of impressions, clicks and activities."),
        zero("events_are_all_there", "events_difference", "events has exactly event_count entries."),
        zero("type_counts_match", "type_counts_difference", "The count of each event type matches events."),
        zero("events_in_order", "events_out_of_order", "Events are ordered by time, then id."),
        zero(
            "bounds_match_events", "bounds_difference", "A session starts with its first event and ends with its last."
        ),
    )


def _prepare(rows: DataFrame, whole: DataFrame | None) -> DataFrame:
    counted = with_repeats(rows, whole, ["session_id"], "session_occurrences")
    counted = _with_nearest_session(counted, whole)
    events, of_type = F.col("events"), [_count_off(event_type) for event_type in VISIT_TYPES]
    first, last = F.try_element_at(events, F.lit(1)), F.try_element_at(events, F.lit(-1))
    return counted.withColumns(
        {
            "duration_us": F.unix_micros("session_end") - F.unix_micros("session_start"),
            "event_date_days_difference": days_difference(F.col("session_start")),
            "missing_counts": count_true(*(F.col(c).isNull() for c in ("event_count", "events", *_COUNTS))),
            "count_difference": F.expr(f"event_count - ({' + '.join(_COUNTS)})"),
            "events_difference": F.col("event_count") - F.size(events),
            "type_counts_difference": count_true(*of_type),
            "events_out_of_order": F.expr(_OUT_OF_ORDER),
            "widest_gap_us": F.expr(_WIDEST_GAP),
            "bounds_difference": count_true(
                first["event_time"] != F.col("session_start"), last["event_time"] != F.col("session_end")
            ),
        }
    )


_PAIRS = "zip_with(slice(events, 1, greatest(size(events) - 1, 0)), slice(events, 2, size(events)), {})"
_OUT_OF_ORDER = "size(filter({}, wrong -> wrong))".format(
    _PAIRS.format(
        "(a, b) -> struct(a.event_time, a.event_id, a.event_type) > struct(b.event_time, b.event_id, b.event_type)"
    )
)
_WIDEST_GAP = "array_max({})".format(_PAIRS.format("(a, b) -> unix_micros(b.event_time) - unix_micros(a.event_time)"))


def _count_off(event_type: str) -> Column:
    held = F.expr(f"size(filter(events, e -> e.event_type = '{event_type}'))")
    return F.col(f"{event_type}_count") != held


def _with_nearest_session(rows: DataFrame, whole: DataFrame | None) -> DataFrame:
    """Adds ``until_nearest_session_us``: the time between a session and its user's nearest one, before or after.

    Negative if they overlap. Both sessions show it, so a new session that overlaps an old one is found among the new.
    """
    by_user = Window.partitionBy("user_id").orderBy("session_start", "session_end", "session_id")
    start, end = F.unix_micros("session_start"), F.unix_micros("session_end")
    nearest = F.least(F.lead(start).over(by_user) - end, start - F.lag(end).over(by_user))
    if whole is None:
        return rows.withColumn("until_nearest_session_us", nearest)
    of_users = whole.join(rows.select("user_id").distinct(), "user_id", how="left_semi")
    gaps = of_users.select(F.col("session_id").alias("_id"), nearest.alias("_gap"))
    gaps = gaps.groupBy("_id").agg(F.min("_gap").alias("until_nearest_session_us"))
    return rows.join(gaps, F.col("session_id") == F.col("_id"), how="left").drop("_id")
