"""The mean of the last values of each key.

::

    size 3, timeout 1h     12:00  12:10  12:20  12:30            14:00
    campaign c1, cost        4      6      8      1                5
    output = full            .      .     6.0    5.0   5.0 last    .
    output = every           0      0     6.0    5.0   5.0 last    0

Values of a key are processed in order of (event_time, value), whatever their order of arrival. Each column of
``moving_average.values`` is averaged separately; nulls are skipped.

*Watermark*: the largest event time of all events minus ``moving_average.watermark``. The mean up to a value is emitted
when the watermark passes the value. With ``clock = processing`` there is no watermark: values are processed as they
arrive.
*State*: the last ``size`` values of each key, and those that the watermark has not passed. When a key has been silent
for longer than ``timeout``, its mean is emitted once more and the key is forgotten.
*Late rows*: dropped by Spark, and counted in the query's progress.
*Cost*: a state function in Python, because no built-in operator can express "the last N"; see docs/architecture.md.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.config.choices import Clock
from spark_jobs.config.durations import microseconds, milliseconds
from spark_jobs.config.sections import MovingAverageSettings
from spark_jobs.contract.tables import MOVING_AVERAGES
from spark_jobs.queries.moving_average.rule import AverageRule
from spark_jobs.queries.state_functions.known_states import each_measure
from spark_jobs.queries.state_functions.processors import AverageProcessor
from spark_jobs.spark.columns import after_watermark

SERIES = ("key", "measure")
"""The columns that identify a series of values to average."""


def moving_average(
    events: DataFrame, settings: MovingAverageSettings, *, initial: DataFrame | None = None
) -> DataFrame:
    """The averages of the values of ``events``.

    Args:
        events: streaming; ``event_time``, the column of the key (text) and those of the values (numbers).
        settings: key, values, size, output and clock.
        initial: not streaming: ``key``, ``measure``, and the last values of each in order of time, as ``times`` (array
            of bigint, microseconds since 1970) and ``values`` (array of double). Only the first batch uses it.

    Returns:
        The columns of ``gold/moving_averages``.

    Source: Spark's `transformWithState
    <https://spark.apache.org/docs/latest/streaming/structured-streaming-transform-with-state.html>`_.
    """
    is_event_time = settings.clock is Clock.EVENT
    timed = events.select("event_time", F.col(settings.key).alias("key"), *settings.values)
    if is_event_time:
        timed = timed.withWatermark("event_time", f"{milliseconds(settings.watermark)} milliseconds")
    values = (
        timed.where(after_watermark("event_time", F.col("key").isNotNull()))
        .select("event_time", "key", each_measure(settings.values).alias("each"))
        .where(after_watermark("event_time", F.col("each.value").isNotNull()))
        .select(
            "key",
            "each.measure",
            F.unix_micros("event_time").alias("event_us"),
            "each.value",
            "event_time",
        )
    )
    rule = AverageRule(settings.size, settings.output, microseconds(settings.timeout) if is_event_time else None)
    averages = values.groupBy(*SERIES).transformWithState(
        AverageProcessor(rule, None if is_event_time else milliseconds(settings.timeout)),
        AverageProcessor.output,
        outputMode="Append",
        timeMode="EventTime" if is_event_time else "ProcessingTime",
        initialState=None if initial is None else initial.groupBy(*SERIES),
    )
    return averages.select(
        *SERIES,
        F.timestamp_micros("window_start_us").alias("window_start"),
        F.timestamp_micros("window_end_us").alias("window_end"),
        "value_count",
        "mean",
        "is_last",
    ).select(*MOVING_AVERAGES.column_names)
