"""Two forms of a table, the live one and one computed anew, compared row by row."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.contracts.backfill import Difference


def differences(live: DataFrame, recomputed: DataFrame, key: Sequence[str], is_open: Column) -> DataFrame:
    """Each row of either side once.

    Args:
        live: the rows as they are; ``key`` (never null) names each of them once.
        recomputed: the rows as they should be, with the same columns and more.
        key: the columns by which rows belong together.
        is_open: of a row of ``recomputed``, whether the live table cannot have it yet.

    Returns:
        The columns of ``key``; ``difference``, see :class:`Difference`; ``columns``, the names of those that are other
        (null unless changed); ``live`` and ``recomputed``, the rows as structs (null where there is none).
    """
    names = live.columns
    left = live.select(F.struct(*names).alias("live"))
    right = recomputed.select(F.struct(*names).alias("recomputed"), is_open.alias("is_open"))
    is_one = [F.col("live")[name] == F.col("recomputed")[name] for name in key]
    changed = F.array_compact(
        F.array(*[F.when(~F.col("live")[name].eqNullSafe(F.col("recomputed")[name]), F.lit(name)) for name in names])
    )
    difference = (
        F.when(F.col("live").isNull() & F.col("is_open"), F.lit(Difference.OPEN.value))
        .when(F.col("live").isNull(), F.lit(Difference.ONLY_RECOMPUTED.value))
        .when(F.col("recomputed").isNull(), F.lit(Difference.ONLY_LIVE.value))
        .when(F.size("columns") == 0, F.lit(Difference.SAME.value))
        .otherwise(F.lit(Difference.CHANGED.value))
    )
    return (
        left.join(right, on=is_one, how="full_outer")
        .withColumn("columns", changed)
        .withColumn("difference", difference)
        .withColumn("columns", F.when(F.col("difference") == Difference.CHANGED.value, F.col("columns")))
        .select(
            *[F.coalesce(F.col("live")[name], F.col("recomputed")[name]).alias(name) for name in key],
            "difference",
            "columns",
            "live",
            "recomputed",
        )
    )
