"""Columns to average, turned into rows."""

from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F


def each_measure(names: Iterable[str]) -> Column:
    """Explodes into a row per column of ``names`` (numbers): a struct of ``measure`` (name) and ``value`` (double)."""
    pairs = [F.struct(F.lit(name).alias("measure"), F.col(name).cast("double").alias("value")) for name in names]
    return F.explode(F.array(*pairs))
