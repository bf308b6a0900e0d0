"""``adloom show``: rows of a table."""

import json
import os
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rich.console import Console
from rich.table import Table

from spark_jobs.console.run import session
from spark_jobs.console.terminal import terminal
from spark_jobs.contracts.errors import LakeError, SettingsError
from spark_jobs.contracts.settings import load_settings
from spark_jobs.contracts.tables import BRONZE_EVENTS
from spark_jobs.lake.layout import Lake, failing_rows_key
from spark_jobs.queries import SHOWN_TABLES, TABLES_BY_NAME
from spark_jobs.runtime.lakes import open_existing
from spark_jobs.sources.delta import read_table
from spark_jobs.transforms.json_rows import json_row
from spark_jobs.transforms.quarantine import in_quarantine, requeued

QUARANTINE = "quarantine"
REQUEUED = "requeued"
FAILING = "failing"
_LONGEST_CELL = 60


def show_table(name: str, location: str, limit: int, config: Path | None) -> None:
    """Prints ``limit`` rows of the table ``name``.

    Raises:
        SettingsError: there is no such table.
        LakeError: the lake has no such table yet.
    """
    known = (*SHOWN_TABLES, QUARANTINE, REQUEUED, FAILING)
    if name not in known:
        raise SettingsError(f"no table {name!r}; there are {', '.join(known)}")
    console, settings = terminal(), load_settings(config, os.environ)
    lake = open_existing(location, settings.s3)
    with session(console, settings, lake) as spark:
        rows = _rows(spark, lake, name)
        found = rows.limit(limit).select(json_row(*rows.columns)).collect()
        _print(console, name, rows.columns, [json.loads(row[0]) for row in found])


def _rows(spark: SparkSession, lake: Lake, name: str) -> DataFrame:
    if name == QUARANTINE:
        still = in_quarantine(read_table(spark, lake, BRONZE_EVENTS))
        return still.select("verdict", "reason", "raw", "source", "ingest_time")
    if name == REQUEUED:
        since = requeued(read_table(spark, lake, BRONZE_EVENTS))
        return since.select("requeued_from", F.col("ingest_time").alias("requeued_at"), "source_name", "raw", "source")
    if name == FAILING:
        return _failing(spark, lake)
    return read_table(spark, lake, SHOWN_TABLES[name])


def _failing(spark: SparkSession, lake: Lake) -> DataFrame:
    found = [table for table in TABLES_BY_NAME.values() if lake.is_table(failing_rows_key(table))]
    if not found:
        raise LakeError(f"no row of {lake.place()} has failed validation; run `adloom validate` to check")
    parts = [
        spark.read.format("delta")
        .load(lake.failing_rows(table))
        .select(F.lit(table.name).alias("table"), "reasons", json_row(*table.column_names).alias("row"))
        for table in found
    ]
    every = parts[0]
    for part in parts[1:]:
        every = every.union(part)
    return every


def _print(console: Console, name: str, columns: list[str], rows: list[dict[str, Any]]) -> None:
    table = Table(title=name, title_justify="left")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*[_cell(row[column]) for column in columns])
    console.print(table)
    console.print(f"{len(rows)} rows", style="dim")


def _cell(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    printable = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)
    return printable if len(printable) <= _LONGEST_CELL else printable[: _LONGEST_CELL - 1] + "…"
