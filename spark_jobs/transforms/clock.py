"""The time of a batch."""

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
