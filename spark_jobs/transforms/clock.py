"""Time: of batches, and of events."""

from datetime import timedelta

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_jobs.contracts.durations import microseconds


def interval(length: timedelta) -> Column:
    """``length`` as a literal: from it Spark derives how long a join keeps each side, before it folds expressions."""
    return F.expr(f"INTERVAL {microseconds(length)} MICROSECOND")


def batch_time() -> Column:
    """The time at which the batch was planned (timestamp), without code generation. A retried batch keeps its time.

    In generated code it would be a constant: new code to compile for every batch. Spark generates no code for
    higher-order functions or their arguments. This one folds an empty array, and so returns its initial value.
    """
    return uncompiled(F.current_timestamp())


def uncompiled(value: Column) -> Column:
    """``value``, a constant that is another one each time, without code generation: see :func:`batch_time`."""
    return F.aggregate(F.array().cast("array<int>"), value, lambda initial, _: initial)


def after_watermark(time: str, condition: Column) -> Column:
    """``condition`` as a filter that Spark leaves above the watermark on the column ``time``.

    Spark pushes a filter below the watermark unless it refers to the event-time column. There, rows that are filtered
    out would no longer advance the watermark: the common clock of all events, heartbeats included, would be lost.
    """
    return F.when(F.col(time).isNull(), F.lit(False)).otherwise(condition)
