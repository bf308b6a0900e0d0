"""The time of a batch, and that of the events."""

from pyspark.sql import Column
from pyspark.sql import functions as F


def batch_time() -> Column:
    """The time at which the batch was planned (timestamp), kept out of the code that Spark generates.

    As a constant it would make new code for every batch, to be compiled anew. Spark makes no code for a function that
    takes a function, but calls it, with all that is in it: here one that goes through no elements, and so gives what it
    began with. A replayed batch keeps its time.
    """
    nothing = F.array().cast("array<int>")
    return F.aggregate(nothing, F.current_timestamp(), lambda time, _: time)


def after_watermark(time: str, condition: Column) -> Column:
    """``condition`` as a filter that Spark leaves above the watermark on the column ``time``.

    Spark pushes a filter below the watermark unless it refers to the event-time column. Below it, rows that are
    filtered out would not move time on: the common clock of all events, heartbeats included, would be lost.
    """
    return F.when(F.col(time).isNull(), F.lit(False)).otherwise(condition)
