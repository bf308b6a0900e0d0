"""Counts records that did not fit: small aggregates of bronze, computed by Spark."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from expectations.bars import count_bars
from expectations.intervals import interval_between
from expectations.ranges import current_version
from expectations.rejected_records.figures import (
    SHOWN_CHARACTERS,
    Example,
    RejectedFigures,
    SourceFigures,
    VerdictFigures,
)
from expectations.timelines import Timelines
from spark_jobs.config.durations import time_of_us
from spark_jobs.contract.events import OK
from spark_jobs.contract.tables import BRONZE_EVENTS
from spark_jobs.spark.open_lake import OpenLake

_REQUEUED_FROM = "requeued_from"
_READ = ("source_name", "verdict", "reason", "source", "ingest_time", "raw", _REQUEUED_FROM)
_HAS_NONE = "none"
"""Stands for a verdict that is missing; a rule of the bronze suite reports it."""
_NONE = "CAST(array() AS ARRAY<TIMESTAMP>)"
_Group = tuple[str | None, str]
"""The name of a source, and a verdict."""


@dataclass
class _Counted:
    """Counts of bronze by source and verdict, ok included. ``newest_us`` are the batches with the newest examples."""

    rows: dict[_Group, Row]
    newest_us: set[int] = field(default_factory=set)

    @property
    def rejected(self) -> dict[_Group, Row]:
        return {group: row for group, row in self.rows.items() if group[1] != OK and row["records"]}


def count_rejected(lake: OpenLake, examples: int) -> RejectedFigures | None:
    """The figures of one version of the bronze table of ``lake``; None if there is no such table.

    The columns ``reason``, ``source_name`` and ``requeued_from`` count as null where the table lacks them. A row with
    ``requeued_from`` is not a record received: it repeats one that was judged again.

    Args:
        lake: the lake whose bronze table to count.
        examples: how many records to show of each source and verdict; 0 for none.
    """
    if not lake.has(BRONZE_EVENTS):
        return None
    version = current_version(lake, BRONZE_EVENTS)
    rows = _read(lake.read(BRONZE_EVENTS, version=version))
    counted = _count(rows, examples)
    received = sum(row["records"] for row in counted.rows.values())
    ends_us = [row["last_us"] for row in counted.rows.values() if row["last_us"] is not None]
    last = _time(max(ends_us, default=None))
    requeued = _requeued(rows, counted) if any(row["requeued"] for row in counted.rows.values()) else {}
    if not counted.rejected and not requeued:
        return RejectedFigures(version, received, timelines=Timelines(last=last))
    shown = _examples(rows, counted.newest_us, examples) if counted.newest_us else {}
    starts_us = [row["first_us"] for row in counted.rejected.values() if row["first_us"] is not None]
    interval = interval_between(_time(min(starts_us, default=None)), last)
    timed = rows.where(_is_rejected() & F.col("ingest_time").isNotNull())
    timelines = Timelines(count_bars(timed, "ingest_time", "source_name", "verdict", interval), interval, last)
    return RejectedFigures(version, received, _sources(counted, requeued, shown), timelines)


def _read(bronze: DataFrame) -> DataFrame:
    """The columns that are counted; a requeue adds ``requeued_from`` to the table."""
    missing = F.lit(None).cast("timestamp").alias(_REQUEUED_FROM)
    rows = bronze if _REQUEUED_FROM in bronze.columns else bronze.withColumn(_REQUEUED_FROM, missing)
    return rows.select(*_READ).withColumn("verdict", F.coalesce("verdict", F.lit(_HAS_NONE)))


def _count(rows: DataFrame, examples: int) -> _Counted:
    is_received = f"WHERE {_REQUEUED_FROM} IS NULL"
    newest = f"max_by(ingest_time, ingest_time, {examples}) FILTER (WHERE verdict <> '{OK}')" if examples else _NONE
    sums = {
        "records": f"count(*) FILTER ({is_received})",
        "requeued": f"count({_REQUEUED_FROM})",
        "first_us": f"unix_micros(min(ingest_time) FILTER ({is_received}))",
        "last_us": f"unix_micros(max(ingest_time) FILTER ({is_received}))",
        "first_requeued_us": f"unix_micros(min({_REQUEUED_FROM}))",
        "last_requeued_us": f"unix_micros(max({_REQUEUED_FROM}))",
        # Raw text is most of the table. Knowing the batches with the newest examples, Delta opens only their files.
        "newest_us": f"transform({newest}, time -> unix_micros(time))",
    }
    grouped = rows.groupBy("source_name", "verdict").agg(*(F.expr(sql).alias(name) for name, sql in sums.items()))
    found = {(row["source_name"], row["verdict"]): row for row in grouped.collect()}
    return _Counted(found, {us for row in found.values() for us in row["newest_us"] or ()})


def _examples(rows: DataFrame, batches_us: Iterable[int], most: int) -> dict[_Group, tuple[Example, ...]]:
    """The newest records that did not fit, by source and verdict."""
    in_batches = reduce(or_, (F.col("ingest_time") == F.timestamp_micros(F.lit(us)) for us in sorted(batches_us)))
    received_us = F.unix_micros("ingest_time").alias("received_us")
    example = F.struct(_cut("reason"), F.col("source").alias("place"), received_us, _cut("raw"))
    newest = F.max_by(example, F.struct(received_us, "source", _cut("raw"), _cut("reason")), most)
    grouped = rows.where(_is_rejected() & in_batches).groupBy("source_name", "verdict").agg(newest.alias("examples"))
    return {
        (row["source_name"], row["verdict"]): tuple(
            Example(one["reason"], one["place"], _time(one["received_us"]), one["raw"]) for one in row["examples"]
        )
        for row in grouped.collect()
    }


def _requeued(rows: DataFrame, counted: _Counted) -> dict[tuple[str | None, str | None], int]:
    """How many rows are requeued records, by the source and verdict of these in quarantine.

    A record is found again by its text, place and time of receipt, because its source may have another name now. One
    that is not found counts under its own source, with verdict None.
    """
    again = [row for row in counted.rows.values() if row["requeued"]]
    first, last = min(row["first_requeued_us"] for row in again), max(row["last_requeued_us"] for row in again)
    is_near = F.col("ingest_time").between(F.timestamp_micros(F.lit(first)), F.timestamp_micros(F.lit(last)))
    text = F.xxhash64("raw")
    then = (
        rows.where(_is_rejected() & is_near)
        .groupBy(text.alias("then_text"), F.col("source").alias("then_place"), F.col("ingest_time").alias("then_time"))
        .agg(F.first("source_name").alias("then_source"), F.first("verdict").alias("then_verdict"))
    )
    is_same = (
        (text == F.col("then_text"))
        & F.col("source").eqNullSafe(F.col("then_place"))
        & (F.col(_REQUEUED_FROM) == F.col("then_time"))
    )
    found = rows.where(F.col(_REQUEUED_FROM).isNotNull()).join(then, is_same, how="left")
    source = F.when(F.col("then_verdict").isNull(), F.col("source_name")).otherwise(F.col("then_source"))
    grouped = found.groupBy(source.alias("name"), "then_verdict").count()
    return {(row["name"], row["then_verdict"]): row["count"] for row in grouped.collect()}


def _sources(
    counted: _Counted,
    requeued: Mapping[tuple[str | None, str | None], int],
    examples: Mapping[_Group, tuple[Example, ...]],
) -> tuple[SourceFigures, ...]:
    names = {name for name, _ in counted.rejected} | {name for name, _ in requeued}
    sources = []
    for name in names:
        verdicts = [
            VerdictFigures(
                verdict,
                row["records"],
                _time(row["first_us"]),
                _time(row["last_us"]),
                requeued.get((source, verdict), 0),
                examples.get((source, verdict), ()),
            )
            for (source, verdict), row in counted.rejected.items()
            if source == name
        ]
        verdicts.sort(key=lambda one: (-one.records, one.verdict))
        received = sum(row["records"] for (source, _), row in counted.rows.items() if source == name)
        again = sum(rows for (source, _), rows in requeued.items() if source == name)
        sources.append(SourceFigures(name, received, again, tuple(verdicts)))
    return tuple(sorted(sources, key=lambda source: (-source.records, source.name or "")))


def _is_rejected() -> Column:
    return F.col("verdict") != OK


def _cut(column: str) -> Column:
    return F.substring(column, 1, SHOWN_CHARACTERS + 1).alias(column)


def _time(micros: int | None) -> datetime | None:
    return None if micros is None else time_of_us(micros)
