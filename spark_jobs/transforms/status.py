"""The order of users' changes of status."""

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_jobs.contracts.choices import UserStatus


def in_order() -> Column:
    """What the rows of ``gold/user_status`` are ordered by: at one instant a user can come online and be active."""
    turn = F.array_position(F.array(*[F.lit(status.value) for status in UserStatus]), F.col("status"))
    return F.struct("since", turn)
