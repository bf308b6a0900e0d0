"""``gold/moving_averages``: a late value changes its own mean, those of the values after it, and the silences.

::

    size 3, timeout 1h   12:00  12:10        12:20  12:30  12:40
    live                   4      6            8      1      2
    means                  .      .           6.0    5.0    3.7
    late                               3 12:15
    means                  .      .    4.3    5.7    4.0    3.7     from here on they agree

The means of a key are compared together from the value before the first late one to where they must agree: ``size``
values after the last late one, or after a silence. Only with ``clock = event``: in processing time, nothing is late.
"""

from datetime import timedelta
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as Over
from pyspark.sql import functions as F

from spark_jobs.config.durations import microseconds
from spark_jobs.config.sections import MovingAverageSettings
from spark_jobs.config.settings import Settings
from spark_jobs.contract.events import KEY
from spark_jobs.contract.tables import MOVING_AVERAGES
from spark_jobs.queries.correction import DUE, GROUP, AffectedRows, Correction, CorrectionInput
from spark_jobs.queries.moving_average.rule import AverageRule, Reading, reach_us, stretch
from spark_jobs.queries.state_functions.known_states import each_measure
from spark_jobs.spark.columns import between, in_order, interval

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

_SERIES = ("key", "measure")
_BOUNDS = "since_us BIGINT, until_us BIGINT, ends_silent BOOLEAN, due_us BIGINT"
_MEANS = f"key STRING, measure STRING, first_us BIGINT, {_BOUNDS}, averages ARRAY<STRUCT<window_start_us: BIGINT, \
window_end_us: BIGINT, value_count: BIGINT, mean: DOUBLE, is_last: BOOLEAN>>"


def recompute(late: DataFrame, scene: CorrectionInput) -> AffectedRows:
    """See :data:`spark_jobs.queries.correction.Recompute`."""
    own = scene.settings.moving_average
    rule = AverageRule(own.size, own.output, microseconds(own.timeout))
    reach = reach_us(rule)
    scope = _stretches(_values(late.where(F.col(own.key).isNotNull()), own, *KEY), reach).localCheckpoint()
    timed = scope.select(F.timestamp_micros("us").alias("event_time"))
    values = _values(scene.events(scene.near(timed, timedelta(microseconds=reach))), own)
    stretches = scope.groupBy(*_SERIES, "first_us").agg(F.max("us").alias("last_us"))
    named = scene.few(stretches.toDF("its_key", "its_measure", "first_us", "last_us"))
    near = (
        (F.col("key") == F.col("its_key"))
        & (F.col("measure") == F.col("its_measure"))
        & F.col("us").between(F.col("first_us") - reach, F.col("last_us") + reach)
    )
    # A stretch without a value has only copies that do not count, so its means are deleted.
    around = named.join(values, on=near, how="left").select(
        F.col("its_key").alias("key"), F.col("its_measure").alias("measure"), "first_us", "last_us", "us", "value"
    )
    found = around.groupBy(*_SERIES, "first_us").applyInPandas(_means(rule), _MEANS)
    found = found.withColumn(GROUP, in_order(*_SERIES, "first_us")).withColumn(DUE, F.timestamp_micros("due_us"))
    found = found.localCheckpoint()
    rows = found.select(*_SERIES, F.inline("averages"), GROUP, DUE)
    bounds = scene.few(found.drop("averages", "due_us", DUE, "first_us").toDF("its_key", "its_measure", *_LIMITS))
    ends = bounds.select(F.timestamp_micros("since_us").alias("since"), F.timestamp_micros("until_us").alias("until"))
    return AffectedRows(
        scope=scope.join(found.select(*_SERIES, "first_us", GROUP, DUE), on=[*_SERIES, "first_us"]).select(
            *KEY, F.timestamp_micros("us").alias("event_time"), GROUP, DUE
        ),
        expected=rows.select(*_of_table(), GROUP, DUE),
        actual=_actual(between(scene.live, "window_end", ends, "since", "until"), bounds),
    )


_LIMITS = ("since_us", "until_us", "ends_silent", GROUP)


def _of_table() -> list[Column]:
    times = {name: F.timestamp_micros(f"{name}_us").alias(name) for name in ("window_start", "window_end")}
    return [times.get(name, F.col(name)) for name in MOVING_AVERAGES.column_names]


def _actual(live: DataFrame, bounds: DataFrame) -> DataFrame:
    """The means of ``live`` in a stretch: see :meth:`spark_jobs.queries.moving_average.rule.Stretch.has`."""
    end = F.unix_micros("window_end")
    is_in = (
        (F.col("key") == F.col("its_key"))
        & (F.col("measure") == F.col("its_measure"))
        & end.between(F.col("since_us"), F.col("until_us"))
        & ((end > F.col("since_us")) | F.col("is_last"))
        & ((end < F.col("until_us")) | ~F.col("is_last") | F.col("ends_silent"))
    )
    return live.join(bounds, on=is_in, how="inner").select(*live.columns, GROUP)


def _values(events: DataFrame, own: MovingAverageSettings, *more: str) -> DataFrame:
    """``key``, ``measure``, ``us`` and ``value`` of each value in ``events``, and the columns ``more``."""
    timed = events.select(
        *more,
        F.col(own.key).alias("key"),
        F.unix_micros("event_time").alias("us"),
        each_measure(own.values).alias("each"),
    )
    return timed.where(F.col("key").isNotNull() & F.col("each.value").isNotNull()).select(
        *more, "key", "us", "each.measure", "each.value"
    )


def _stretches(late: DataFrame, reach: int) -> DataFrame:
    """``late`` values with the ``first_us`` of those close enough to be in one stretch."""
    in_time = Over.partitionBy(*_SERIES).orderBy("us")
    is_apart = F.coalesce(F.col("us") - F.lag("us").over(in_time) > 2 * reach, F.lit(True)).cast("int")
    numbered = late.withColumn("number", is_apart).withColumn("number", F.sum("number").over(in_time))
    first = F.min("us").over(Over.partitionBy(*_SERIES, "number"))
    return numbered.withColumn("first_us", first).drop("number")


def _means(rule: AverageRule) -> "Callable[[pd.DataFrame], pd.DataFrame]":
    """The function that computes the means of one stretch, from its values."""

    def means(rows: "pd.DataFrame") -> "pd.DataFrame":
        import pandas as pd

        first = rows.iloc[0]
        known = rows.dropna(subset=["us"])
        readings = [Reading(int(us), float(value)) for us, value in zip(known["us"], known["value"], strict=True)]
        found = stretch(readings, int(first["first_us"]), int(first["last_us"]), rule)
        averages = [one._asdict() for one in found.averages]
        row = (first["key"], first["measure"], first["first_us"], found.since_us, found.until_us, found.ends_silent)
        return pd.DataFrame(
            [(*row, found.due_us(rule), averages)],
            columns=["key", "measure", "first_us", "since_us", "until_us", "ends_silent", "due_us", "averages"],
        )

    return means


def _row_due(settings: Settings) -> Column:
    """When a mean is emitted: when its last value is passed; for the last one before a silence, at its timeout."""
    silence = interval(settings.moving_average.timeout)
    return F.when(F.col("is_last"), F.col("window_end") + silence).otherwise(F.col("window_end"))


CORRECTION = Correction(
    recompute=recompute,
    key=lambda _columns: ("key", "measure", "window_end", "is_last"),
    time="window_end",
    row_due=_row_due,
    counts={},
)
