"""Writing the windows of campaigns: into a table by key, and into a file for dashboards."""

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.contracts.choices import StatsOutput
from spark_jobs.contracts.commits import CommitNote
from spark_jobs.contracts.durations import microseconds
from spark_jobs.contracts.files import json_bytes
from spark_jobs.contracts.lake import FEED, Lake
from spark_jobs.contracts.manifest import Manifest
from spark_jobs.contracts.sections import CampaignStatsSettings
from spark_jobs.contracts.tables import CAMPAIGN_STATS, Table
from spark_jobs.sinks.delta import Output, TableOutput, Write, append_rows, create_table
from spark_jobs.transforms.windows import KEY, SUMS, rate, summed

Window = dict[str, Any]
"""A row of ``gold/campaign_stats``, its times as text."""


def outputs_of_windows(settings: CampaignStatsSettings, lake: Lake, manifest: Manifest | None) -> list[Output]:
    """Where the batches of ``campaign_stats`` go: its table and, unless switched off, the feed.

    Args:
        settings: the output mode, and the length of the feed.
        lake: where they lie.
        manifest: of the checkpoint in use.
    """
    how: Write | None = None
    if settings.output is StatsOutput.UPDATE:
        how = add_to_windows
    elif manifest and manifest.follows:
        how = add_new_windows
    table, feed = TableOutput(lake, CAMPAIGN_STATS, how), Feed(lake, settings.feed)
    return [table, feed] if feed.length else [table]


def add_to_windows(rows: DataFrame, lake: Lake, table: Table, note: CommitNote) -> None:
    """Adds ``rows`` (the columns of ``gold/campaign_stats``) to those of ``table``, by key, and begins new ones.

    One commit, which bears ``note``; without effect if the writer of ``note`` has committed its batch already.
    """
    spark = rows.sparkSession
    create_table(spark, lake, table)
    near = _near(rows)
    if near is None:
        # A merge of nothing commits nothing, and the table must tell of every batch.
        append_rows(rows, lake, table, note)
        return
    there = DeltaTable.forPath(spark, lake.table(table)).alias("there")
    same = " AND ".join(f"there.{name} <=> new.{name}" for name in KEY)
    total = {name: F.col(f"there.{name}") + F.col(f"new.{name}") for name in SUMS}
    # Each query has a session of its own, which these hold for: no other writer is told so. Nor may its next batch be,
    # which can be an append.
    told = {
        "spark.databricks.delta.write.txnAppId": note.writer,
        "spark.databricks.delta.write.txnVersion": str(note.batch),
        "spark.databricks.delta.commitInfo.userMetadata": note.model_dump_json(exclude_defaults=True),
    }
    for key, value in told.items():
        spark.conf.set(key, value)
    try:
        (
            there.merge(summed(rows).alias("new"), near & F.expr(same))
            .whenMatchedUpdate(set={**total, "ctr": rate(total["impressions"], total["clicks"])})
            .whenNotMatchedInsertAll()
            .execute()
        )
    finally:
        for key in told:
            spark.conf.unset(key)


def add_new_windows(rows: DataFrame, lake: Lake, table: Table, note: CommitNote) -> None:
    """Appends those of ``rows`` (the columns of ``gold/campaign_stats``) whose window and campaign ``table`` has not.

    For a checkpoint that was begun anew: its state holds parts of windows that were put out before.
    """
    spark = rows.sparkSession
    create_table(spark, lake, table)
    near = _near(rows)
    if near is not None:
        there = spark.read.format("delta").load(lake.table(table)).alias("there").where(near).select(*KEY)
        rows = rows.join(there, on=list(KEY), how="left_anti")
    append_rows(rows, lake, table, note)


def _near(rows: DataFrame) -> Column | None:
    """Holds for windows of the table (``there``) that lie among those of ``rows``; None: ``rows`` has none.

    Files of a table tell between which times their windows lie, so that the others are not read.
    """
    ((first_us, last_us),) = rows.agg(
        F.unix_micros(F.min("window_start")), F.unix_micros(F.max("window_end"))
    ).collect()
    if first_us is None:
        return None
    begins, ends = F.timestamp_micros(F.lit(first_us)), F.timestamp_micros(F.lit(last_us))
    return (F.col("there.window_start") >= begins) & (F.col("there.window_end") <= ends)


@dataclass(frozen=True)
class Feed:
    """The newest windows in one small JSON file, :data:`spark_jobs.contracts.lake.FEED`.

    Attributes:
        lake: where it lies.
        length: how much of event time it holds, up to the end of the newest window.
    """

    lake: Lake
    length: timedelta

    def has(self, note: CommitNote) -> bool:
        """Whether the batch of ``note`` is in it."""
        before = self._read()
        return before.get("writer") == note.writer and before.get("batch", -1) >= note.batch

    def write(self, rows: DataFrame, note: CommitNote) -> None:
        """Adds ``rows`` (the columns of ``gold/campaign_stats``) up with what it holds, and notes the batch in it."""
        found = [row.asDict() for row in self._newest(summed(rows)).collect()]
        windows = {_key(window): window for window in self._read().get("windows", [])}
        for row in found:
            new = row | {name: row[name].isoformat() + "Z" for name in KEY[:2]}
            windows[_key(new)] = _added(windows.get(_key(new)), new)
        kept = self._keep(sorted(windows.values(), key=_key))
        content = {"writer": note.writer, "batch": note.batch, "windows": kept}
        self.lake.files.write(FEED, json_bytes(content))

    def _newest(self, windows: DataFrame) -> DataFrame:
        ((last_us,),) = windows.agg(F.unix_micros(F.max("window_end"))).collect()
        since_us = (last_us or 0) - microseconds(self.length)
        return windows.where(F.unix_micros("window_end") > since_us).select(
            *[F.col(name).cast("timestamp_ntz").alias(name) for name in KEY[:2]], *windows.columns[2:]
        )

    def _keep(self, windows: list[Window]) -> list[Window]:
        if not windows:
            return []
        last = max(datetime.fromisoformat(window["window_end"]) for window in windows)
        return [one for one in windows if datetime.fromisoformat(one["window_end"]) > last - self.length]

    def _read(self) -> dict[str, Any]:
        text = self.lake.files.read(FEED)
        content: dict[str, Any] = json.loads(text) if text else {}
        return content


def _key(window: Window) -> tuple[str, ...]:
    return tuple(window[name] for name in KEY)


def _added(there: Window | None, new: Window) -> Window:
    if there is None:
        return new
    total = {name: there[name] + new[name] for name in SUMS}
    return new | total | {"ctr": total["clicks"] / total["impressions"] if total["impressions"] else None}
