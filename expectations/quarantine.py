"""The quarantine query: finds rows that break rules and stores them with the reasons."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from delta.tables import DeltaTable
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from expectations.rules import Rule, sql_text
from spark_jobs.contract.tables import Table
from spark_jobs.lake.layout import Lake
from spark_jobs.spark.columns import json_row

SHOWN_ROWS = 20
"""How many failing rows of a table the report shows; the table of failing rows has them all."""

_SHOWN_CHARACTERS = 120


@dataclass(frozen=True)
class FailingRows:
    """The failing rows of one table: where they are stored, and the first few.

    Attributes:
        count: How many rows break at least one rule.
        place: URI of the Delta table that stores them: the table's columns, ``reasons``, ``validated_at``, ``version``.
        columns: The names of the columns shown.
        first: The first rows as text, in the order of ``columns``.
    """

    count: int
    place: str
    columns: tuple[str, ...]
    first: tuple[tuple[str, ...], ...]


def failing_rows(df: DataFrame, rules: Sequence[Rule]) -> DataFrame:
    """The rows of ``df`` that break any of ``rules``, with ``reasons``, an array of ``rule: expectation``.

    Args:
        df: Rows with every column the rules name, as returned by a suite's ``prepare``.
        rules: Rules about single rows; rules about a share of the rows are ignored.
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
    """Writes ``failing`` under the lake's reports; returns None if there are no rows.

    Failing rows of one table version are stored once, however often that version is validated.
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
        first = [json.loads(row[0]) for row in kept.limit(SHOWN_ROWS).select(json_row(*columns)).collect()]
    finally:
        kept.unpersist()
    shown = tuple(tuple(_as_text(row[column]) for column in columns) for row in first)
    return FailingRows(count, place, columns, shown)


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return "; ".join(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN_CHARACTERS or isinstance(value, list) else f"{text[:_SHOWN_CHARACTERS]}…"
