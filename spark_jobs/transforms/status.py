"""The order of status changes."""

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_jobs.contracts.choices import UserStatus


def in_order() -> Column:
    """The sort key of ``gold/user_status`` rows: a user can become online and active at the same instant."""
    turn = F.array_position(F.array(*[F.lit(status.value) for status in UserStatus]), F.col("status"))
    return F.struct("since", turn)
