"""gold/moving_averages: the mean of the last N values of each key."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from expectations.rules import Rule, between, in_set, length, not_null, unique
from expectations.suites.base import Suite, with_repeats
from spark_jobs.config.choices import AverageOutput, Clock
from spark_jobs.config.durations import format_duration, microseconds
from spark_jobs.config.settings import Settings
from spark_jobs.contract.events import MAX_ID_CHARACTERS
from spark_jobs.contract.tables import MOVING_AVERAGES

_LAST = ["key", "measure", "window_end", "is_last"]


def suite(settings: Settings) -> Suite:
    """The rules for moving averages."""
    average, size = settings.moving_average, settings.moving_average.size
    least = size if average.output is AverageOutput.FULL else 1
    longest = (size - 1) * microseconds(average.timeout)
    in_order: tuple[Rule, ...] = (
        between("ends_after_start", "duration_us", "The last value never precedes the first.", minimum=0),
        between(
            "no_silence_within",
            "duration_us",
            f"No gap between the values of a mean exceeds the timeout of {format_duration(average.timeout)}.",
            maximum=longest,
        ),
    )
    rules: tuple[Rule, ...] = (
        not_null("key", "Every mean has a key."),
        length("key", 1, MAX_ID_CHARACTERS, f"key has 1 to {MAX_ID_CHARACTERS} characters."),
        not_null("measure", "Every mean has a measure."),
        in_set("measure", average.values, "measure is one of moving_average.values."),
        not_null("window_start", "Every mean has the time of its first value."),
        not_null("window_end", "Every mean has the time of its last value."),
        # With clock = processing, values count in order of arrival, whatever their event times.
        *(in_order if average.clock is Clock.EVENT else ()),
        not_null("value_count", "Every mean has the number of its values."),
        between(
            "value_count_in_range",
            "value_count",
            f"A mean covers 1 to {average.size} values.",
            minimum=1,
            maximum=average.size,
        ),
        between(
            "enough_values", "value_count", f"A mean covers {least} values or more.", minimum=least, when="NOT is_last"
        ),
        not_null("mean", "Every row has a mean."),
        not_null("is_last", "Every row says whether its key was dropped from state afterwards."),
        unique("last_unique", "occurrences", "A key has one last row when it is dropped from state.", when="is_last"),
    )
    return Suite(MOVING_AVERAGES, rules, _prepare)


def _prepare(rows: DataFrame, whole: DataFrame | None) -> DataFrame:
    return with_repeats(rows, whole, _LAST, "occurrences").withColumn(
        "duration_us", F.unix_micros("window_end") - F.unix_micros("window_start")
    )
