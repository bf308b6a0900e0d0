"""Columns whose values are averaged, as rows."""

from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F


def each_measure(names: Iterable[str]) -> Column:
    """A row for each column of ``names`` (numbers): a struct of ``measure`` (its name) and ``value`` (double)."""
    pairs = [F.struct(F.lit(name).alias("measure"), F.col(name).cast("double").alias("value")) for name in names]
    return F.explode(F.array(*pairs))
