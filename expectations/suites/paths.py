"""gold/paths: the touches that led to each conversion."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from expectations.rules import Rule, between, in_set, not_null, unique, zero
from expectations.suites.base import Suite, days_difference, with_repeats
from spark_jobs.config.choices import PathOutcome, TouchKind
from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import PATHS

_OUTCOMES = tuple(outcome.value for outcome in PathOutcome)


def suite(settings: Settings) -> Suite:
    """The rules for paths."""
    return Suite(PATHS, (*_conversion_rules(settings), *_touch_rules()), _prepare)


def _conversion_rules(settings: Settings) -> tuple[Rule, ...]:
    return (
        not_null("conversion_id", "Every path has the id of its conversion."),
        unique("conversion_unique", "conversion_occurrences", "A conversion, by id and time, has one path."),
        *([] if settings.may_lack_user else [not_null("user_id", "Every conversion has a user id.")]),
        not_null("conversion_time", "Every conversion has its time."),
        not_null("conversion_type", "Every conversion says what the user did."),
        not_null("value_micros", "Every conversion has a value, if only 0."),
        between("value_not_negative", "value_micros", "A value is never negative.", minimum=0, when="revokes IS NULL"),
        between(
            "refund_not_positive",
            "value_micros",
            "A refund takes its value back.",
            maximum=0,
            when="revokes IS NOT NULL",
        ),
        not_null("currency", "A value other than 0 has a currency.", "value_micros <> 0"),
        not_null("event_date", "Every path has its partition date."),
        zero("event_date_matches", "event_date_days_difference", "event_date is the UTC date of conversion_time."),
    )


def _touch_rules() -> tuple[Rule, ...]:
    return (
        not_null("outcome", "Every path has an outcome."),
        in_set("outcome", _OUTCOMES, f"outcome is one of {', '.join(_OUTCOMES)}."),
        zero(
            "outcome_fits_touches",
            "outcome_difference",
            "outcome says whether a click, only views or nothing led here.",
        ),
        not_null("touches", "Every path has its touches, if only an empty list."),
        not_null("path_length", "Every path has its length."),
        zero("path_length_is_right", "path_length_difference", "path_length is the number of touches."),
        zero("positions_count_up", "positions_difference", "The positions of touches are 1, 2, 3 and so on."),
        zero(
            "touches_are_complete",
            "incomplete_touches",
            "A touch has its time, impression, campaign and ad, and a click its id; a view has no click_id.",
        ),
        zero("touches_in_order", "touches_out_of_order", "Touches are ordered by time, then id."),
        zero("impressions_once", "impressions_repeated", "An impression is one touch of a path."),
        zero("touches_not_after_conversion", "touches_after", "No touch comes after its conversion."),
    )


def _prepare(rows: DataFrame, whole: DataFrame | None) -> DataFrame:
    counted = with_repeats(rows, whole, ["conversion_id", "conversion_time"], "conversion_occurrences")
    return counted.withColumns(
        {"event_date_days_difference": days_difference(F.col("conversion_time"))}
        | {name: F.expr(sql) for name, sql in _FOUND.items()}
    )


_CLICK, _VIEW = TouchKind.CLICK.value, TouchKind.VIEW.value
_THROUGH_CLICK, _THROUGH_VIEW, _ORGANIC = _OUTCOMES
_FITTING = (
    f"CASE WHEN touches IS NULL THEN NULL WHEN exists(touches, t -> t.kind = '{_CLICK}') "
    f"THEN '{_THROUGH_CLICK}' WHEN size(touches) > 0 THEN '{_THROUGH_VIEW}' ELSE '{_ORGANIC}' END"
)
_IS_COMPLETE = (
    "t.touch_time IS NOT NULL AND t.impression_id IS NOT NULL AND t.campaign_id IS NOT NULL AND t.ad_id IS NOT NULL "
    f"AND t.kind IN ('{_CLICK}', '{_VIEW}') AND (t.kind = '{_CLICK}') = (t.click_id IS NOT NULL)"
)
_PLACE = "struct({0}.touch_time, coalesce({0}.click_id, {0}.impression_id), {0}.impression_id)"
_OUT_OF_ORDER = (
    "zip_with(slice(touches, 1, greatest(size(touches) - 1, 0)), slice(touches, 2, size(touches)), "
    f"(a, b) -> {_PLACE.format('a')} > {_PLACE.format('b')})"
)
_FOUND = {
    "outcome_difference": f"CAST(outcome <> {_FITTING} AS INT)",
    "path_length_difference": "path_length - size(touches)",
    "positions_difference": "size(filter(touches, (t, place) -> coalesce(t.position, 0) <> place + 1))",
    "incomplete_touches": f"size(filter(touches, t -> NOT coalesce({_IS_COMPLETE}, false)))",
    "touches_out_of_order": f"size(filter({_OUT_OF_ORDER}, wrong -> wrong))",
    "impressions_repeated": "size(touches) - size(array_distinct(transform(touches, t -> t.impression_id)))",
    "touches_after": "size(filter(touches, t -> t.touch_time > conversion_time))",
}
"""By name, SQL of the columns that rules about touches look at."""
