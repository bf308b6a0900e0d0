"""Rows that join the first batch of a stream, for an operator that takes no initial state."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def with_seeds(rows: DataFrame, seeds: DataFrame, key: tuple[str, str]) -> DataFrame:
    """``rows`` with ``seeds`` next to the one row that has ``key``, so in the same batch.

    A stream cannot take another source for a single batch. A join with rows at rest costs only the join::

        rows       key     joined with        gives
        e1         key     itself, s1, s2     e1, s1, s2
        e2         .       nothing            e2

    Args:
        rows: streaming; ``event_type`` and ``event_id``, which identify a row, and other columns of simple types.
        seeds: not streaming; some of the columns of ``rows``.
        key: event type and id of a row.

    Returns:
        The columns of ``rows``; those that ``seeds`` does not have are null in its rows.
    """
    types = dict(rows.dtypes)
    columns = [(F.col(n) if n in seeds.columns else F.lit(None)).cast(t).alias(n) for n, t in types.items()]
    seeded = seeds.select(F.struct(*columns).alias("seed"))
    itself = seeds.sparkSession.range(1).select(F.lit(None).cast(seeded.schema["seed"].dataType).alias("seed"))
    event_type, event_id = key
    added = itself.unionAll(seeded).select(
        F.lit(event_type).alias("event_type"), F.lit(event_id).alias("event_id"), "seed"
    )
    joined = rows.join(F.broadcast(added), on=["event_type", "event_id"], how="left")
    seed = F.col("seed")
    return joined.select(*[F.when(seed.isNotNull(), seed[name]).otherwise(F.col(name)).alias(name) for name in types])
