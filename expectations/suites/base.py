"""The parts of a suite, and columns that several suites add."""

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from expectations.rules import Rule
from spark_jobs.contract.tables import Table
from spark_jobs.spark.open_lake import OpenLake

Prepare = Callable[[DataFrame, DataFrame | None], DataFrame]
"""Adds the columns a suite's rules need.

Takes the rows to check and the whole table, or None if the rows are the whole table.
"""


@dataclass(frozen=True)
class Suite:
    """The rules of one table, and the columns they need besides the table's own."""

    table: Table
    rules: tuple[Rule, ...]
    prepare: Prepare
    earlier: Callable[[OpenLake], DataFrame | None] = lambda _lake: None
    """Rows that those of the table follow, with its columns, themselves not checked; None if it has none."""


def with_repeats(
    rows: DataFrame,
    whole: DataFrame | None,
    keys: list[str],
    name: str,
    measure: Column | None = None,
    *,
    near: Column | None = None,
) -> DataFrame:
    """Adds to ``rows`` the column ``name``: how often the row's ``keys`` occur in the whole table; 1 for null keys.

    If ``rows`` are only new rows, the whole table is searched for just their keys, so a new row that repeats an old one
    is found. Only repeated keys are joined back: on a good table that side is empty, and nothing is sorted.

    Args:
        rows: The rows to check.
        whole: The table they belong to; None if they are the whole table.
        keys: The columns that form the key.
        name: The column to add.
        measure: Aggregate over the rows of one key to use as the number of occurrences; a count by default.
        near: The same, but over the rows of a repeated key only; it decides.
    """
    table = rows if whole is None else whole.join(rows.select(*keys).distinct(), keys, how="left_semi")
    aliases = {key: f"_{name}_{key}" for key in keys}
    counted = table.groupBy(*keys).agg((F.count(F.lit(1)) if measure is None else measure).alias(name))
    repeated = counted.where(F.col(name) > 1)
    if near is not None:
        repeated = table.join(repeated.select(*keys), keys, how="left_semi").groupBy(*keys).agg(near.alias(name))
    repeated = repeated.select(*(F.col(k).alias(a) for k, a in aliases.items()), name)
    same = [F.col(key) == F.col(alias) for key, alias in aliases.items()]
    joined = rows.join(repeated, same, how="left").drop(*aliases.values())
    return joined.withColumn(name, F.coalesce(F.col(name), F.lit(1)))


def days_difference(time: Column) -> Column:
    """The difference in days between ``event_date`` and the date of ``time``."""
    return F.datediff(F.col("event_date"), F.to_date(time))


def count_true(*conditions: Column) -> Column:
    """How many of ``conditions`` are true; null counts as false."""
    total = F.lit(0)
    for condition in conditions:
        total = total + F.when(condition, 1).otherwise(0)
    return total
