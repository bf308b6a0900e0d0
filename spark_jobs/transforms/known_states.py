"""What a state function knew of each key: computed at rest from silver, for a checkpoint that is begun anew.

``settled_before`` is the watermark of the query's last batch: what lies behind it was decided. Nobody has noted which
events came too late for the query; those that did are taken here as if they had not.
"""

from datetime import datetime

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from spark_jobs.contracts.choices import UserStatus
from spark_jobs.contracts.durations import microseconds
from spark_jobs.contracts.events import HEARTBEAT
from spark_jobs.contracts.sections import MovingAverageSettings
from spark_jobs.transforms.measures import each_measure
from spark_jobs.transforms.open_rows import is_settled, settled_us
from spark_jobs.transforms.status import in_order


def last_values(silver: DataFrame, settled_before: datetime, settings: MovingAverageSettings) -> DataFrame:
    """The values that the means of ``moving_average`` go on from.

    Args:
        silver: all rows of silver.
        settled_before: see above.
        settings: those of the query.

    Returns:
        ``key``, ``measure``, ``times``, ``values``, as :func:`spark_jobs.operators.moving_average.moving_average` takes
        them.
    """
    values = (
        silver.where(is_settled(settled_before) & F.col(settings.key).isNotNull())
        .select(
            F.unix_micros("event_time").alias("us"),
            F.col(settings.key).alias("key"),
            each_measure(settings.values).alias("each"),
        )
        .where(F.col("each.value").isNotNull())
        .select("key", "each.measure", "us", "each.value")
    )
    timeout_us = microseconds(settings.timeout)
    newest_first = Window.partitionBy("key", "measure").orderBy(F.desc("us"), F.desc("value"))
    silence_us = F.lag("us").over(newest_first) - F.col("us")
    # As the rule has it: a value just at the timeout still follows, and once that time has passed none will.
    until_now_us = settled_us(settled_before) - F.col("us")
    is_over = F.coalesce(silence_us > timeout_us, until_now_us >= timeout_us).cast("int")
    recent = (
        values.withColumn("place", F.row_number().over(newest_first))
        .withColumn("is_over", is_over)
        .withColumn("silences", F.sum("is_over").over(newest_first))
        .where((F.col("silences") == 0) & (F.col("place") <= settings.size))
    )
    in_order = F.sort_array(F.collect_list(F.struct("us", "value")))
    return (
        recent.groupBy("key", "measure")
        .agg(in_order.alias("found"))
        .select("key", "measure", F.col("found.us").alias("times"), F.col("found.value").alias("values"))
    )


def users_there(silver: DataFrame, put_out: DataFrame, settled_before: datetime) -> DataFrame:
    """The users whom ``user_status`` has told to be there, and of whom it has not told that they are gone.

    Args:
        silver: all rows of silver.
        put_out: the rows of ``gold/user_status``.
        settled_before: see above.

    Returns:
        ``user_id``, ``status``, ``last_us``, as :func:`spark_jobs.operators.user_status.user_status` takes them.
    """
    last_one = F.max_by(F.struct("status", "since"), in_order()).alias("last")
    there = (
        put_out.groupBy("user_id")
        .agg(last_one)
        .where(F.col("last.status") != UserStatus.INACTIVE.value)
        .select("user_id", "last.status", "last.since")
    )
    seen = silver.where(is_settled(settled_before) & (F.col("event_type") != HEARTBEAT))
    last_us = seen.groupBy("user_id").agg(F.unix_micros(F.max("event_time")).alias("last_us"))
    return there.join(last_us, on="user_id", how="inner").select("user_id", "status", "last_us")
