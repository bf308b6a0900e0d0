"""The rules that follow from a table's declared key, for tables without a suite of their own."""

from pyspark.sql import DataFrame

from expectations.rules import Rule, not_null, unique
from expectations.suites.base import Suite, with_repeats
from spark_jobs.contract.tables import Table


def keyed_suite(table: Table) -> Suite:
    """The columns of the key are filled, and no two rows have the same key."""
    key = list(table.key)

    def prepare(rows: DataFrame, whole: DataFrame | None) -> DataFrame:
        return with_repeats(rows, whole, key, "key_occurrences") if key else rows

    rules: tuple[Rule, ...] = tuple(not_null(column, f"Every row has its {column}.") for column in key)
    if key:
        rules += (unique("key_unique", "key_occurrences", f"There is one row for each {', '.join(key)}."),)
    return Suite(table, rules, prepare)
