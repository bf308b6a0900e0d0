"""gold/credits: what each touch of a conversion is credited with, by each model.

That credits add up to the values of the conversions is a rule about two tables: see ``expectations.suites.lake``.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from expectations.rules import Rule, between, in_set, not_null, unique, zero
from expectations.suites.base import Suite, count_true, days_difference, with_repeats
from spark_jobs.config.choices import CreditModel
from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import CREDITS
from spark_jobs.credit.plan import WHOLE_PPM

_MODELS = tuple(model.value for model in CreditModel)
_OF_TOUCH = ("impression_id", "campaign_id", "ad_id")
_SHARED = ["conversion_id", "conversion_time", "model"]
"""Rows with the same share one value. An id may be that of two conversions."""


def suite(_settings: Settings) -> Suite:
    """The rules for credits."""
    return Suite(CREDITS, (*_row_rules(), *_path_rules()), _prepare)


def _row_rules() -> tuple[Rule, ...]:
    return (
        not_null("conversion_id", "Every credit has the id of its conversion."),
        not_null("model", "Every credit has its model."),
        in_set("model", _MODELS, f"model is one of {', '.join(_MODELS)}."),
        not_null("position", "Every credit has the position of its touch, or 0."),
        not_null("credit_micros", "Every touch is credited with something, if only 0."),
        not_null("weight_ppm", "Every touch has a weight, if only 0."),
        between(
            "weight_ppm_in_range",
            "weight_ppm",
            f"A weight is between 0 and {WHOLE_PPM:,} parts of a million.",
            minimum=0,
            maximum=WHOLE_PPM,
        ),
        zero("touch_is_complete", "missing_fields", "A touch has its impression, campaign and ad.", "position > 0"),
        zero("organic_is_empty", "surplus_fields", "What no touch led to is no ad's credit.", "position = 0"),
        not_null("conversion_time", "Every credit has the time of its conversion."),
        not_null("event_date", "Every credit has its partition date."),
        zero("event_date_matches", "event_date_days_difference", "event_date is the UTC date of conversion_time."),
    )


def _path_rules() -> tuple[Rule, ...]:
    return (
        unique("credit_unique", "credit_occurrences", "A model credits a touch of a conversion once."),
        zero(
            "weights_add_up",
            "weights_difference",
            f"The weights of a conversion's touches add up to {WHOLE_PPM:,} in each model.",
        ),
        zero(
            "positions_without_gaps",
            "positions_difference",
            "A model credits all touches of a conversion, from position 1 on without gaps, or position 0 alone.",
        ),
    )


def _prepare(rows: DataFrame, whole: DataFrame | None) -> DataFrame:
    counted = with_repeats(rows, whole, [*_SHARED, "position"], "credit_occurrences")
    filled = (*_OF_TOUCH, "click_id")
    return _with_sums(counted, whole).withColumns(
        {
            "missing_fields": count_true(*(F.col(name).isNull() for name in _OF_TOUCH)),
            "surplus_fields": count_true(*(F.col(name).isNotNull() for name in filled)),
            "event_date_days_difference": days_difference(F.col("conversion_time")),
        }
    )


def _with_sums(rows: DataFrame, whole: DataFrame | None) -> DataFrame:
    """Adds ``weights_difference`` and ``positions_difference``, of all rows that share a value with a row."""
    table = rows if whole is None else whole.join(rows.select(*_SHARED).distinct(), _SHARED, how="left_semi")
    sums = table.groupBy(*(F.col(key).alias(f"_{key}") for key in _SHARED)).agg(
        (F.sum("weight_ppm") - WHOLE_PPM).alias("weights_difference"),
        F.expr(_POSITIONS_DIFFERENCE).alias("positions_difference"),
    )
    same = [F.col(key) == F.col(f"_{key}") for key in _SHARED]
    return rows.join(sums, same, how="left").drop(*(f"_{key}" for key in _SHARED))


_POSITIONS_DIFFERENCE = (
    "CASE WHEN max(position) = 0 THEN count(*) - 1 ELSE abs(max(position) - count(*)) + abs(min(position) - 1) END"
)
