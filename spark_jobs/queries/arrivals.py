"""The rows of bronze and silver that some commits brought, read at rest: by ``ingest_time``, which has statistics.

Files are compacted and removed, and commits are cleaned from the log, but a row keeps its time of receipt. The result
may contain rows of other commits: see :func:`spark_jobs.lake.batches.arrivals`. So callers must tolerate rows that they
have seen before.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.config.durations import time_of_us
from spark_jobs.contract.tables import Table
from spark_jobs.lake.batch import EVER_US, Batch, Batches
from spark_jobs.lake.batches import arrivals, last_arrival, read_batches
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.log import BatchSpan
from spark_jobs.lake.notes import version_reached
from spark_jobs.queries.query import Query
from spark_jobs.spark.open_lake import OpenLake


def spans_read(lake: Lake, query: Query, since: int, *, until: int) -> list[BatchSpan]:
    """The batches in which ``query`` read the versions after ``since``, oldest first; old ones are summed up.

    Args:
        lake: the lake.
        query: the query.
        since: a version of the table that it reads; -1: all.
        until: the last version of its own table that counts.
    """

    def reached(batch: Batch) -> int | None:
        note = batch.note
        return min(map(version_reached, note.reached)) if note and note.query == query.name else None

    def is_enough(found: Batches) -> bool:
        first = next((version for batch in found.batches if (version := reached(batch)) is not None), None)
        return first is not None and first <= since

    own = read_batches(lake, query.writes, is_enough).batches
    found: dict[int, int] = {}
    for batch in own:
        if batch.note and batch.version <= until and (version := reached(batch)) is not None and version > since:
            # A later batch may reach no further, under a newer watermark: the first one has read it.
            found.setdefault(version, batch.note.watermark_ms)
    if not found:
        return []
    table = read_batches(lake, query.reads[0], lambda found: found.begins <= since + 1)
    spans, first = [], since + 1
    for version, watermark_ms in sorted(found.items()):
        spans.append(BatchSpan(first, version, watermark_ms, table.arrivals(first, version)))
        first = version + 1
    return spans


def rows_added(lake: OpenLake, table: Table, spans: list[BatchSpan]) -> DataFrame:
    """The rows that were added to ``table`` in ``spans``."""
    return _received(lake.read(table), [span.received for span in spans if span.received])


def rows_between(lake: OpenLake, table: Table, first: int, last: int) -> DataFrame:
    """The rows that versions ``first`` to ``last`` added to ``table``."""
    ends = arrivals(lake, table, first, last)
    return _received(lake.read(table), [ends] if ends else [])


def read_up_to(lake: OpenLake, table: Table, version: int) -> DataFrame:
    """The rows of ``table`` in ``version``, however old that is."""
    last = last_arrival(lake, table, version)
    rows = lake.read(table)
    return rows if last is None else rows.where(F.col("ingest_time") <= F.lit(last))


def _received(rows: DataFrame, ranges: list[tuple[int, int]]) -> DataFrame:
    if not ranges:
        return rows.where(F.lit(False))
    first, last = min(begin for begin, _ in ranges), max(end for _, end in ranges)
    if first > 0:
        rows = rows.where(F.col("ingest_time") >= F.lit(time_of_us(first)))
    return rows if last >= EVER_US else rows.where(F.col("ingest_time") <= F.lit(time_of_us(last)))
