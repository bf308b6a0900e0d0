"""gold/attributions: clicks joined to their impressions."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from expectations.rules import Rule, between, in_set, not_null, unique, zero
from expectations.suites.base import Suite, count_true, days_difference, with_repeats
from spark_jobs.config.choices import JoinType
from spark_jobs.config.durations import format_duration, microseconds, milliseconds
from spark_jobs.config.sections import AttributeSettings
from spark_jobs.config.settings import Settings
from spark_jobs.contract.events import ATTRIBUTION_STATUSES
from spark_jobs.contract.tables import ATTRIBUTIONS

_CLICKED, _UNCLICKED, _ORPHAN = ATTRIBUTION_STATUSES
_OF_IMPRESSION = ("impression_time", "campaign_id", "ad_id")
_OF_CLICK = ("click_id", "click_time")
_STATUSES = {
    JoinType.FULL_OUTER: ATTRIBUTION_STATUSES,
    JoinType.LEFT_OUTER: (_CLICKED, _UNCLICKED),
    JoinType.RIGHT_OUTER: (_CLICKED, _ORPHAN),
    JoinType.INNER: (_CLICKED,),
}
_FILLED = {
    _CLICKED: (*_OF_IMPRESSION, *_OF_CLICK, "click_delay_ms"),
    _UNCLICKED: _OF_IMPRESSION,
    _ORPHAN: _OF_CLICK,
}
_EMPTY = {_UNCLICKED: (*_OF_CLICK, "click_delay_ms"), _ORPHAN: (*_OF_IMPRESSION, "cost_micros", "click_delay_ms")}


def suite(settings: Settings) -> Suite:
    """The rules for attributions; ``attribute.join`` decides which statuses may occur."""
    rules = (*_row_rules(settings), *_time_rules(settings.attribute), *_key_rules(), *_net_rules())
    return Suite(ATTRIBUTIONS, rules, _prepare)


def _row_rules(settings: Settings) -> tuple[Rule, ...]:
    join = settings.attribute.join
    return (
        not_null("status", "Every row has a status."),
        in_set("status", _STATUSES[join], f"status is one that the {join.value} join emits."),
        not_null("impression_id", "Every row has an impression id, if only the one its click refers to."),
        *([] if settings.may_lack_user else [not_null("user_id", "Every row has a user id.")]),
        *(
            zero(f"{status}_is_complete", "missing_fields", f"A row with status {status} has {_listed(columns)}.", when)
            for status, columns in _FILLED.items()
            for when in (f"status = '{status}'",)
        ),
        *(
            zero(
                f"{status}_has_no_more",
                "surplus_fields",
                f"A row with status {status} leaves {_listed(columns)} null.",
                when,
            )
            for status, columns in _EMPTY.items()
            for when in (f"status = '{status}'",)
        ),
        between("cost_micros_not_negative", "cost_micros", "A cost is never negative.", minimum=0),
    )


def _time_rules(own: AttributeSettings) -> tuple[Rule, ...]:
    limit, early = format_duration(own.window), format_duration(own.tolerance)
    return (
        between(
            "click_not_before_impression",
            "true_click_delay_us",
            f"A click never precedes its impression by more than the tolerance of {early}.",
            minimum=-microseconds(own.tolerance),
        ),
        between(
            "click_within_window",
            "true_click_delay_us",
            f"A click counts only within {limit} of its impression.",
            maximum=microseconds(own.window),
        ),
        between(
            "click_delay_ms_in_range",
            "click_delay_ms",
            f"click_delay_ms is no lower than minus the tolerance of {early}, and at most the window of {limit}.",
            minimum=-milliseconds(own.tolerance),
            maximum=milliseconds(own.window),
        ),
        zero("click_delay_ms_is_right", "click_delay_ms_difference", "click_delay_ms is click_time - impression_time."),
        not_null("event_date", "Every row has its partition date."),
        zero(
            "event_date_matches",
            "event_date_days_difference",
            "event_date is the UTC date of the impression, or of the click if there is no impression.",
        ),
    )


def _key_rules() -> tuple[Rule, ...]:
    return (
        unique("click_unique", "click_occurrences", "A click, by id and time, counts once.", "click_id IS NOT NULL"),
        unique(
            "unclicked_unique",
            "unclicked_occurrences",
            "An unclicked impression appears once, and not also as clicked.",
            f"status <> '{_ORPHAN}'",
        ),
    )


def _net_rules() -> tuple[Rule, ...]:
    return (
        zero(
            "invalid_in_order",
            "invalid_difference",
            "invalid names at least one rule, each once and in order, or is null.",
        ),
        zero(
            "invalid_impression_has_rules",
            "unnamed_marks",
            "A row whose impression is invalid names the rule; an orphan click has no impression that could be.",
        ),
    )


def _listed(columns: tuple[str, ...]) -> str:
    return f"{', '.join(columns[:-1])} and {columns[-1]}"


def _prepare(rows: DataFrame, whole: DataFrame | None) -> DataFrame:
    true_delay = F.unix_micros("click_time") - F.unix_micros("impression_time")
    status = F.col("status")
    # Orphan clicks do not count here: several may refer to one impression, and that one may have come late.
    rows_if_unclicked = F.when(F.count_if(status == _UNCLICKED) > 0, F.count_if(status != _ORPHAN))
    counted = with_repeats(rows, whole, ["click_id", "click_time"], "click_occurrences")
    counted = with_repeats(
        counted, whole, ["impression_id", "impression_time"], "unclicked_occurrences", rows_if_unclicked
    )
    return counted.withColumns(
        {
            "missing_fields": count_true(*((status == s) & F.col(c).isNull() for s, cs in _FILLED.items() for c in cs)),
            "surplus_fields": count_true(
                *((status == s) & F.col(c).isNotNull() for s, cs in _EMPTY.items() for c in cs)
            ),
            "true_click_delay_us": true_delay,
            "click_delay_ms_difference": F.col("click_delay_ms") - F.floor(true_delay / 1000),
            "event_date_days_difference": days_difference(F.coalesce("impression_time", "click_time")),
            "invalid_difference": count_true(
                F.size("invalid") == 0,
                F.exists("invalid", lambda rule: rule.isNull()),
                F.array_sort(F.array_distinct("invalid")) != F.col("invalid"),
            ),
            "unnamed_marks": count_true(
                F.col("invalid_impression") & (F.col("invalid").isNull() | (status == _ORPHAN)),
            ),
        }
    )
