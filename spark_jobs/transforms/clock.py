"""The time of a batch, and that of the events."""

from pyspark.sql import Column
from pyspark.sql import functions as F


def batch_time(some_text: str) -> Column:
    """The time at which the batch was planned (timestamp), kept out of the code that Spark generates.

    As a constant it would make new code for every batch, to be compiled anew: seconds of it. Spark keeps an array apart
    from the code, and does not fold an index that depends on the row. A replayed batch keeps its time.

    Args:
        some_text: a text or binary column of the rows; its content does not matter.
    """
    always_0 = F.octet_length(some_text) * 0
    return F.get(F.array(F.current_timestamp()), F.coalesce(always_0, F.lit(0)))


def after_watermark(time: str, condition: Column) -> Column:
    """``condition`` as a filter that Spark leaves above the watermark on the column ``time``.

    Spark pushes a filter below the watermark unless it refers to the event-time column. Below it, rows that are
    filtered out would not move time on: the common clock of all events, heartbeats included, would be lost.
    """
    return F.when(F.col(time).isNull(), F.lit(False)).otherwise(condition)
