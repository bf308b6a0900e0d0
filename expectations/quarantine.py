"""The quarantine query: the rows that break rules, with the reasons, and where they are kept."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from delta.tables import DeltaTable
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from expectations.rules import Rule, sql_text
from spark_jobs.contracts.lake import Lake
from spark_jobs.contracts.tables import Table

SHOWN_ROWS = 20
"""Failing rows of a table that the report shows; the rest lie in the table of failing rows."""

_SHOWN_CHARACTERS = 120


@dataclass(frozen=True)
class FailingRows:
    """Where the failing rows of one table lie, and the first of them.

    Attributes:
        count: Rows that break at least one rule.
        place: URI of the Delta table that holds them: the table's columns, ``reasons``, ``validated_at``, ``version``.
        columns: Names of the columns shown.
        first: The first rows as text, in the order of ``columns``.
    """

    count: int
    place: str
    columns: tuple[str, ...]
    first: tuple[tuple[str, ...], ...]


def failing_rows(df: DataFrame, rules: Sequence[Rule]) -> DataFrame:
    """The rows of ``df`` that break any of ``rules``, with ``reasons``, an array of ``rule: what should hold``.

    Args:
        df: Rows with every column the rules name, as a suite's ``prepare`` gives them.
        rules: Rules about single rows; rules on a share are passed over.
    """
    reasons = [
        f"CASE WHEN {rule.violation} THEN {sql_text(f'{rule.name}: {rule.reason}')} END"
        for rule in rules
        if rule.keeps_rows
    ]
    found = F.expr(f"array_compact(array({', '.join(reasons)}))") if reasons else F.array().cast("array<string>")
    return df.withColumn("reasons", found).where(F.size("reasons") > 0)


def keep_failing_rows(
    failing: DataFrame, table: Table, lake: Lake, validated_at: datetime, version: int
) -> FailingRows | None:
    """Write ``failing`` under the lake's reports; None when there are none.

    Rows found in one version of the table are kept once, however often that version is validated.
    """
    spark = failing.sparkSession
    place = lake.failing_rows(table)
    kept = failing.select(
        *table.column_names, "reasons", F.lit(validated_at).alias("validated_at"), F.lit(version).alias("version")
    ).cache()
    try:
        count = kept.count()
        if not count:
            return None
        writer = kept.write.format("delta").option("mergeSchema", "true").partitionBy("version")
        if DeltaTable.isDeltaTable(spark, place):
            writer.mode("overwrite").option("replaceWhere", f"version = {version}").save(place)
        else:
            writer.mode("append").save(place)
        columns = (*table.column_names, "reasons")
        first = kept.select(*columns).limit(SHOWN_ROWS).collect()
    finally:
        kept.unpersist()
    return FailingRows(count, place, columns, tuple(tuple(map(_as_text, row)) for row in first))


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    text = (
        "; ".join(map(str, value)) if isinstance(value, list) and all(isinstance(v, str) for v in value) else str(value)
    )
    return text if len(text) <= _SHOWN_CHARACTERS or isinstance(value, list) else f"{text[:_SHOWN_CHARACTERS]}…"
