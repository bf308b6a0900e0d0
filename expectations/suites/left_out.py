"""gold/left_out: the value of conversions that is in no path, and why."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from expectations.rules import Rule, between, in_set, not_null, unique, zero
from expectations.suites.base import Suite, days_difference, with_repeats
from spark_jobs.config.choices import LeftOut
from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import LEFT_OUT

_REASONS = tuple(reason.value for reason in LeftOut)
_IS_REPEAT = f"reason = '{LeftOut.REPEAT.value}'"


def suite(_settings: Settings) -> Suite:
    """The rules for what is left out."""
    return Suite(LEFT_OUT, _rules(), _prepare)


def _rules() -> tuple[Rule, ...]:
    return (
        not_null("conversion_id", "Every row has the id of its conversion."),
        unique("conversion_unique", "conversion_occurrences", "A conversion, by id and time, is left out once."),
        not_null("conversion_time", "Every conversion has its time."),
        not_null("conversion_type", "Every conversion says what the user did."),
        not_null("reason", "Every row says why its value is left out."),
        in_set("reason", _REASONS, f"reason is one of {', '.join(_REASONS)}."),
        zero("reason_fits_conversion", "reason_difference", "A purchase is left out as a repeat, a refund for others."),
        not_null("left_out_micros", "Every row has the value that is left out, if only 0."),
        between("value_not_negative", "left_out_micros", "A value is never negative.", minimum=0, when=_IS_REPEAT),
        between(
            "refund_not_positive",
            "left_out_micros",
            "A refund takes its value back.",
            maximum=0,
            when=f"NOT {_IS_REPEAT}",
        ),
        not_null("currency", "A value other than 0 has a currency.", "left_out_micros <> 0"),
        not_null("event_date", "Every row has its partition date."),
        zero("event_date_matches", "event_date_days_difference", "event_date is the UTC date of conversion_time."),
    )


def _prepare(rows: DataFrame, whole: DataFrame | None) -> DataFrame:
    counted = with_repeats(rows, whole, ["conversion_id", "conversion_time"], "conversion_occurrences")
    return counted.withColumns(
        {
            "event_date_days_difference": days_difference(F.col("conversion_time")),
            "reason_difference": F.expr(f"CAST(({_IS_REPEAT}) <> (revokes IS NULL) AS INT)"),
        }
    )
