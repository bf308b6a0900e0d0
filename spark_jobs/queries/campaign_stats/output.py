"""Writing the windows of campaigns: to their table, and to a small file for dashboards.

A row of the table is always a whole window: the query emits a window once, complete (``append``), or the table adds up
what the query emits as events arrive (``update``). A reset keeps that: see :func:`replace_open_windows`.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.config.choices import StatsOutput
from spark_jobs.config.durations import EPOCH, ROUNDING, microseconds, milliseconds
from spark_jobs.config.sections import CampaignStatsSettings
from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import CAMPAIGN_STATS, SUMS, VALID, Table
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.notes import CommitNote
from spark_jobs.lake.store.files import json_bytes
from spark_jobs.places import FEED
from spark_jobs.queries.campaign_stats.windows import KEY, cost_of, key_of, rate, summed
from spark_jobs.queries.manifest import Manifest
from spark_jobs.queries.output import Output, TableOutput
from spark_jobs.spark.write_delta import append_rows, create_table, despite_rewrites, replace_rows

Window = dict[str, Any]
"""A row of ``gold/campaign_stats``, its times as text."""


def outputs_of_windows(settings: Settings, lake: Lake, manifest: Manifest | None) -> list[Output]:
    """The outputs of ``campaign_stats``: its table and, unless switched off, the feed.

    Args:
        settings: output mode, length of the feed, ``attribute.window``.
        lake: where they lie.
        manifest: of the checkpoint in use.
    """
    own, since_ms = settings.campaign_stats, manifest.final_before_ms if manifest else 0
    table = TableOutput(lake, CAMPAIGN_STATS, WindowsWriter(own.output, settings.attribute.window, since_ms))
    return [table, Feed(lake, own.feed)] if own.feed else [table]


def final_before_ms(note: CommitNote, reach: timedelta) -> int:
    """The time (milliseconds since 1970) by which a window must end to be final after the batch of ``note``.

    A click may refer to an impression as old as ``reach`` (``attribute.window``), so Spark delays the operators after
    the join by the same time.
    """
    return max(note.final_before_ms, note.watermark_ms - milliseconds(reach + ROUNDING))


@dataclass(frozen=True)
class WindowsWriter:
    """Writes a batch of windows to ``gold/campaign_stats``.

    Attributes:
        output: ``append``: rows are final windows; ``update``: rows are added to those in the table.
        reach: ``attribute.window``.
        since_ms: windows that end by then (milliseconds since 1970) are not written; they were final before a reset.
    """

    output: StatsOutput
    reach: timedelta
    since_ms: int

    def __call__(self, rows: DataFrame, lake: Lake, table: Table, note: CommitNote) -> None:
        """Writes ``rows`` (the columns of ``gold/campaign_stats``) in one commit, unless the table has the batch."""
        own = rows.where(_is_open(self.since_ms)) if self.since_ms else rows
        held = note.model_copy(update={"final_before_ms": self.since_ms})
        write = add_to_windows if self.output is StatsOutput.UPDATE else append_rows
        write(own, lake, table, note.model_copy(update={"final_before_ms": final_before_ms(held, self.reach)}))


def _is_open(final_ms: int) -> str:
    """The SQL condition that a window ends after ``final_ms`` (milliseconds since 1970).

    With a literal: only by such does Delta find out which files need not be opened.
    """
    time = (EPOCH + timedelta(milliseconds=final_ms)).strftime("%Y-%m-%d %H:%M:%S.%f")
    return f"window_end > TIMESTAMP_LTZ '{time} UTC'"


def replace_open_windows(rows: DataFrame, lake: Lake, table: Table, note: CommitNote) -> None:
    """Replaces the windows of ``table`` that are not final with the sums of ``rows``; final windows are left alone.

    A reset does this. ``rows`` is what the rebuilt query emits for the events that it has read again: nothing in append
    mode, so that no open window is mistaken for a final one; every open window in full in update mode, whatever the
    length of windows was before.

    Args:
        rows: the columns of ``gold/campaign_stats``.
        lake: where the table lies.
        table: the output.
        note: ``final_before_ms`` says which windows are final; the commit carries it.
    """
    is_open = _is_open(note.final_before_ms)
    replace_rows(summed(rows).where(is_open), is_open, lake, table, note)


def add_to_windows(rows: DataFrame, lake: Lake, table: Table, note: CommitNote) -> None:
    """Adds ``rows`` (the columns of ``gold/campaign_stats``) to the windows in ``table``, and inserts new ones.

    One commit, which carries ``note``; does nothing if the writer of ``note`` has already committed its batch.
    """
    spark = rows.sparkSession
    create_table(spark, lake, table)
    near = _near(rows)
    if near is None:
        # A merge of nothing commits nothing, and the table must have a note of every batch.
        append_rows(rows, lake, table, note)
        return
    there = DeltaTable.forPath(spark, lake.table(table)).alias("there")
    same = " AND ".join(f"there.{name} <=> new.{name}" for name in key_of(rows.columns))
    total = _total(SUMS) | _total(VALID)
    # A merge takes these from the session only. Each query has its own session, so no other writer sees them; the
    # query's next batch must not see them either, because it may be an append.
    marks = {
        "spark.databricks.delta.write.txnAppId": note.writer,
        "spark.databricks.delta.write.txnVersion": str(note.batch),
        "spark.databricks.delta.commitInfo.userMetadata": note.as_metadata(),
    }
    merge = (
        there.merge(summed(rows).alias("new"), near & F.expr(same))
        .whenMatchedUpdate(set={**total, "ctr": rate(total["impressions"], total["clicks"])})
        .whenNotMatchedInsert(values={name: F.col(f"new.{name}") for name in rows.columns})
    )
    for key, value in marks.items():
        spark.conf.set(key, value)
    try:
        despite_rewrites(merge.execute)
    finally:
        for key in marks:
            spark.conf.unset(key)


def _total(names: Sequence[str]) -> dict[str, Column]:
    """The sums ``names`` (impressions, clicks, cost) of the rows ``there`` and ``new`` together."""
    impressions, clicks, cost = names
    counts = {name: F.col(f"there.{name}") + F.col(f"new.{name}") for name in (impressions, clicks)}
    there, new = (F.when(F.col(f"{side}.{impressions}") > 0, F.col(f"{side}.{cost}")) for side in ("there", "new"))
    priced = cost_of(counts[impressions], F.coalesce(there + new, there, new))
    # Null net means that it equals gross; that must hold for the sum too.
    return {**counts, cost: F.when(counts[impressions].isNotNull(), priced)}


def _near(rows: DataFrame) -> Column | None:
    """Whether a window of the table (``there``) lies between the first and the last of ``rows``; None without rows.

    Delta knows the span of windows in each file, and so skips files outside.
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
    """The newest windows of ``gold/campaign_stats`` in one small JSON file, :data:`spark_jobs.places.FEED`.

    It is read from the table after each batch with rows, so it always agrees with the table.

    Attributes:
        lake: where it lies.
        length: how much event time it covers, back from the end of the newest window.
    """

    lake: Lake
    length: timedelta

    def has(self, note: CommitNote) -> bool:  # noqa: ARG002
        """False: writing the feed again is harmless, and a crash may have come between the table and the feed."""
        return False

    def write(self, rows: DataFrame, note: CommitNote) -> None:  # noqa: ARG002
        """Writes the feed, after ``rows`` (the columns of ``gold/campaign_stats``) have been written to the table."""
        ((newest_us,),) = rows.agg(F.unix_micros(F.max("window_end"))).collect()
        if newest_us is not None:
            self.refresh(rows.sparkSession, newest_us)

    def refresh(self, spark: SparkSession, newest_us: int = 0) -> None:
        """Writes the feed from the table.

        Args:
            spark: the session.
            newest_us: a lower bound (microseconds since 1970) for the end of the newest window in the table.
        """
        windows = self._windows(spark, max(newest_us, self._newest_us()))
        if not windows:
            table = spark.read.format("delta").load(self.lake.table(CAMPAIGN_STATS))
            ((newest_us,),) = table.agg(F.unix_micros(F.max("window_end"))).collect()
            windows = [] if newest_us is None else self._windows(spark, newest_us)
        self.lake.files.write(FEED, json_bytes({"windows": windows}))

    def _windows(self, spark: SparkSession, newest_us: int) -> list[Window]:
        """The windows of the feed if the newest one ends at ``newest_us`` or later; none if it ends earlier."""
        table = spark.read.format("delta").load(self.lake.table(CAMPAIGN_STATS))
        since = F.timestamp_micros(F.lit(newest_us - microseconds(self.length)))
        times = [F.col(name).cast("timestamp_ntz").alias(name) for name in KEY[:2]]
        ends_us = F.unix_micros("window_end")
        found = (
            table.where(F.col("window_end") > since)
            .select(ends_us.alias("ends_us"), *times, *(name for name in table.columns if name not in KEY[:2]))
            .collect()
        )
        last_us = max((row["ends_us"] for row in found), default=0)
        if last_us < newest_us:
            return []
        kept = (row.asDict() for row in found if row["ends_us"] > last_us - microseconds(self.length))
        return sorted(map(_window, kept), key=_key)

    def _newest_us(self) -> int:
        """The end of the feed, in microseconds since 1970; 0 if it has no window."""
        text = self.lake.files.read(FEED)
        windows: list[Window] = json.loads(text)["windows"] if text else []
        ends = (datetime.fromisoformat(window["window_end"]) for window in windows)
        return max((microseconds(end - EPOCH) for end in ends), default=0)


def _window(row: dict[str, Any]) -> Window:
    times = {name: row[name].isoformat() + "Z" for name in KEY[:2]}
    return {name: times.get(name, value) for name, value in row.items() if name != "ends_us"}


def _key(window: Window) -> tuple[str, ...]:
    return tuple(str(window[name]) for name in key_of(window))


def write_rebuilt_windows(
    rows: DataFrame, settings: CampaignStatsSettings, lake: Lake, note: CommitNote, *, final_ms: int
) -> None:
    """Writes the output of the batch that rebuilds the state to the table and the feed.

    See :func:`replace_open_windows`.

    Args:
        rows: the columns of ``gold/campaign_stats``.
        settings: the length of the feed.
        lake: where they lie.
        note: of the reset.
        final_ms: windows that end by then (milliseconds since 1970) are final.
    """
    replace_open_windows(rows, lake, CAMPAIGN_STATS, note.model_copy(update={"final_before_ms": final_ms}))
    if settings.feed:
        Feed(lake, settings.feed).refresh(rows.sparkSession)
