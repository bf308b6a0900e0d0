"""A live table and its recomputation, compared row by row."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.contracts.backfill import Difference


def differences(live: DataFrame, recomputed: DataFrame, key: Sequence[str], is_open: Column) -> DataFrame:
    """Full outer comparison: every row of either side once.

    Args:
        live: the actual rows; ``key`` (never null) is unique.
        recomputed: the expected rows, with at least the same columns.
        key: the columns to match rows by.
        is_open: whether the live table cannot have a row of ``recomputed`` yet.

    Returns:
        The columns of ``key``; ``difference``, see :class:`Difference`; ``columns``, the names of those that differ
        (null unless changed); ``live`` and ``recomputed``, the rows as structs (null where missing).
    """
    names = live.columns
    left = live.select(F.struct(*names).alias("live"))
    right = recomputed.select(F.struct(*names).alias("recomputed"), is_open.alias("is_open"))
    same_key = [F.col("live")[name] == F.col("recomputed")[name] for name in key]
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
        left.join(right, on=same_key, how="full_outer")
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
