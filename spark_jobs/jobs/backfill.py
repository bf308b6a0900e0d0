"""A past window of gold recomputed from bronze, in batch, and compared with the live tables.

::

    bronze  ──first of each event──▶ events ──the live job's own operators──▶ rows of the window ──▶ side table
                                                                                     │
    gold    ──rows of the window─────────────────────────────────────────────────────┴──compare──▶ differences

In batch nothing is late. So rows differ where the live job dropped late events, where it has not reached them yet
(``open``), or where someone changed the live table. The live tables are only read.

*Cost*: reads all of bronze twice, because a duplicate may carry another event time than the first copy.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import Window as Over
from pyspark.sql import functions as F

from spark_jobs.contracts.backfill import Difference, Window, differences_key, recomputed_key
from spark_jobs.contracts.durations import microseconds
from spark_jobs.contracts.events import OK
from spark_jobs.contracts.settings import Settings
from spark_jobs.contracts.tables import ATTRIBUTIONS, BRONZE_EVENTS, SESSIONS, Table
from spark_jobs.jobs.initial import has_taken, read_taken
from spark_jobs.lake.layout import Lake
from spark_jobs.operators.attribute import attribute
from spark_jobs.operators.sessionize import sessionize
from spark_jobs.queries.attribute import NAME as ATTRIBUTE
from spark_jobs.queries.sessionize import NAME as SESSIONIZE
from spark_jobs.queries.sessionize import QUERY as SESSIONIZE_QUERY
from spark_jobs.runtime.reports import read_report
from spark_jobs.sources.delta import read_table
from spark_jobs.transforms.clock import interval
from spark_jobs.transforms.differences import differences
from spark_jobs.transforms.json_rows import json_row
from spark_jobs.transforms.late import first_of_each
from spark_jobs.transforms.open_rows import KEY

_KEYS = {ATTRIBUTIONS: ("subject", "subject_id"), SESSIONS: ("session_id",)}
"""The key of each table; of attributions it is the click, or the impression that nobody clicked."""


@dataclass(frozen=True)
class Comparison:
    """The comparison of one table over the window.

    Attributes:
        table: the live table.
        counts: number of rows by difference.
        first: the first rows that differ and are not open: the difference, the columns that differ, the live row and
            the recomputed row, both as JSON.
        recomputed: key in the lake of the recomputed rows.
        differences: key in the lake of the comparison.
    """

    table: Table
    counts: dict[Difference, int]
    first: list[tuple[Difference, list[str], str | None, str | None]]
    recomputed: str
    differences: str

    @property
    def differing(self) -> int:
        """Number of rows that are not as they should be."""
        return sum(count for kind, count in self.counts.items() if kind not in (Difference.SAME, Difference.OPEN))


def backfill(
    spark: SparkSession,
    settings: Settings,
    lake: Lake,
    window: Window,
    *,
    shown: int = 10,
    on_progress: Callable[[str], None] = lambda _line: None,
) -> list[Comparison]:
    """Recomputes the rows of gold whose event time lies in ``window``; replaces the tables of an earlier backfill.

    The event time of an attribution is that of its impression, or of the orphan click; that of a session is its start.

    Args:
        spark: the session.
        settings: those of the live job.
        lake: the lake.
        window: which rows.
        shown: how many differing rows of each table to return.
        on_progress: called with a line of text at every step.

    Raises:
        LakeError: a table is missing.
    """
    live = {table: read_table(spark, lake, table) for table in (ATTRIBUTIONS, SESSIONS)}
    bronze = read_table(spark, lake, BRONZE_EVENTS)
    found = []
    for table, recompute, time in (
        (ATTRIBUTIONS, _attributions, F.coalesce("impression_time", "click_time")),
        (SESSIONS, _sessions, F.col("session_start")),
    ):
        on_progress(f"{table.name}: recomputing from bronze")
        rows = recompute(settings, lake, bronze, window)
        _write(rows.where(_within(time, window)), lake, recomputed_key(window, table))
        recomputed = spark.read.format("delta").load(lake.uri(recomputed_key(window, table)))
        on_progress(f"{table.name}: comparing with the live table")
        compared = differences(
            _named(live[table].where(_within(time, window)), table),
            _named(recomputed, table),
            _KEYS[table],
            F.col("is_open"),
        )
        _write(compared, lake, differences_key(window, table))
        found.append(_comparison(spark, lake, window, table, shown))
    return found


def _attributions(settings: Settings, lake: Lake, bronze: DataFrame, window: Window) -> DataFrame:
    """All attributions of the window and some around it, with ``is_open``: see :class:`Difference`."""
    reach = settings.attribute.window
    events = _first_of_each(bronze, F.col("event_time").between(window.begin - reach, window.end + reach))
    due = F.coalesce(F.col("impression_time") + interval(reach), F.col("click_time"))
    return attribute(events, events, settings.attribute).withColumn(
        "is_open", _is_open(due, _watermark(lake, ATTRIBUTE))
    )


def _sessions(settings: Settings, lake: Lake, bronze: DataFrame, window: Window) -> DataFrame:
    """All sessions that begin in the window and some around it, with ``is_open``: see :class:`Difference`.

    An event begins a session if its user was silent for the gap before it, so looking back by the gap is enough. A
    session may be of any length, so the events of its user are read to the end.
    """
    gap = settings.sessionize.gap
    is_in_reach = F.col("event_time") >= window.begin - gap
    events = _first_of_each(bronze, is_in_reach)
    if has_taken(lake, SESSIONIZE_QUERY):
        initial = read_taken(bronze.sparkSession, lake, SESSIONIZE_QUERY).where(is_in_reach)
        events = events.unionByName(initial, allowMissingColumns=True)
    active = events.where(_within(F.col("event_time"), window)).select("user_id").distinct()
    sessions = sessionize(events.join(active, on="user_id", how="left_semi"), settings.sessionize)
    # is_last splits a session window into pieces, which are emitted together when the window closes.
    of_user = Over.partitionBy("user_id").orderBy("session_start", "session_end")
    silence = F.unix_micros("session_start") - F.unix_micros(F.lag("session_end").over(of_user))
    is_first = F.coalesce(silence > microseconds(gap), F.lit(True))
    numbered = sessions.withColumn("piece_of", F.sum(is_first.cast("int")).over(of_user))
    ends = F.max("session_end").over(Over.partitionBy("user_id", "piece_of")) + interval(gap)
    return numbered.withColumn("is_open", _is_open(ends, _watermark(lake, SESSIONIZE))).drop("piece_of")


def _first_of_each(bronze: DataFrame, is_in_reach: Column) -> DataFrame:
    """The first copy of each event, if it is in reach; a copy outside may have come first."""
    good = bronze.where(F.col("verdict") == OK).drop("raw", "verdict", "received_time", "requeued_from")
    keys = good.where(is_in_reach).select(*KEY).distinct()
    return first_of_each(good.join(keys, on=list(KEY), how="left_semi")).where(is_in_reach)


def _named(rows: DataFrame, table: Table) -> DataFrame:
    """``rows`` with their key columns."""
    if table != ATTRIBUTIONS:
        return rows
    is_click = F.col("click_id").isNotNull()
    return rows.withColumn("subject", F.when(is_click, F.lit("click")).otherwise(F.lit("impression"))).withColumn(
        "subject_id", F.when(is_click, F.col("click_id")).otherwise(F.col("impression_id"))
    )


def _watermark(lake: Lake, query: str) -> datetime | None:
    report = read_report(lake, query)
    return report.watermark if report else None


def _is_open(due: Column, watermark: datetime | None) -> Column:
    return F.lit(True) if watermark is None else due >= F.lit(watermark)


def _within(time: Column, window: Window) -> Column:
    return (time >= F.lit(window.begin)) & (time < F.lit(window.end))


def _write(rows: DataFrame, lake: Lake, key: str) -> None:
    rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(lake.uri(key))


def _comparison(spark: SparkSession, lake: Lake, window: Window, table: Table, shown: int) -> Comparison:
    rows = spark.read.format("delta").load(lake.uri(differences_key(window, table)))
    counts = {Difference(row["difference"]): row["count"] for row in rows.groupBy("difference").count().collect()}
    differ = rows.where(~F.col("difference").isin(Difference.SAME.value, Difference.OPEN.value))
    first = (
        differ.orderBy("difference", *_KEYS[table])
        .limit(shown)
        .select("difference", "columns", *[_json(side) for side in ("live", "recomputed")])
        .collect()
    )
    return Comparison(
        table=table,
        counts={kind: counts.get(kind, 0) for kind in Difference},
        first=[(Difference(row[0]), row[1] or [], row[2], row[3]) for row in first],
        recomputed=recomputed_key(window, table),
        differences=differences_key(window, table),
    )


def _json(side: str) -> Column:
    return F.when(F.col(side).isNotNull(), json_row(f"{side}.*")).alias(side)
