"""A past window of gold computed anew from bronze, in batch, and compared with what the live job made of it.

::

    bronze  ──first of each event──▶ events ──the live job's own operators──▶ rows of the window ──▶ side table
                                                                                     │
    gold    ──rows of the window─────────────────────────────────────────────────────┴──compare──▶ differences

In batch nothing is late, so the rows that differ are those that lateness has cost, those that the live job has not come
to yet (``open``), and those that somebody has tampered with. The live tables are read and never written.

*Cost*: reads all of bronze twice: a copy of an event may bear another time than the first one.
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
from spark_jobs.contracts.lake import Lake
from spark_jobs.contracts.settings import Settings
from spark_jobs.contracts.tables import ATTRIBUTIONS, BRONZE_EVENTS, SESSIONS, Table
from spark_jobs.operators.attribute import attribute
from spark_jobs.operators.deduplicate import KEY
from spark_jobs.operators.sessionize import sessionize
from spark_jobs.queries.attribute import NAME as ATTRIBUTE
from spark_jobs.queries.sessionize import NAME as SESSIONIZE
from spark_jobs.runtime.reports import read_report
from spark_jobs.sources.delta import read_table
from spark_jobs.transforms.differences import differences
from spark_jobs.transforms.json_rows import json_row

_KEYS = {ATTRIBUTIONS: ("subject", "subject_id"), SESSIONS: ("session_id",)}
"""By table, what names a row: of attributions the click, or the impression that nobody clicked."""


@dataclass(frozen=True)
class Comparison:
    """A table of the window: how many rows are how different, and the first ones that are, as JSON of either side.

    Attributes:
        table: the live table.
        counts: rows, by difference.
        first: of the rows that differ and are not open: the difference, the columns, the live row, the other row.
        recomputed: key in the lake of the rows computed anew.
        differences: key in the lake of the comparison.
    """

    table: Table
    counts: dict[Difference, int]
    first: list[tuple[Difference, list[str], str | None, str | None]]
    recomputed: str
    differences: str

    @property
    def differing(self) -> int:
        """Rows that are not as they should be."""
        return sum(count for kind, count in self.counts.items() if kind not in (Difference.SAME, Difference.OPEN))


def backfill(
    spark: SparkSession,
    settings: Settings,
    lake: Lake,
    window: Window,
    *,
    shown: int = 10,
    on_progress: Callable[[str], None] = lambda _told: None,
) -> list[Comparison]:
    """Computes the rows of gold anew whose event time lies in ``window``; the tables of an earlier time are replaced.

    Of attributions it is the time of the impression, of an orphan click its own; of sessions that of the first event.

    Args:
        spark: the session.
        settings: those of the live job.
        lake: the lake.
        window: which rows.
        shown: how many rows that differ are given back, of each table.
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
        on_progress(f"{table.name}: computing them anew from bronze")
        rows = recompute(settings, lake, bronze, window)
        _write(rows.where(_within(time, window)), lake, recomputed_key(window, table))
        recomputed = spark.read.format("delta").load(lake.uri(recomputed_key(window, table)))
        on_progress(f"{table.name}: comparing them with the live ones")
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
    """All attributions of the window, and some around it; ``is_open``: see :class:`Difference`."""
    reach = settings.attribute.window
    events = _first_of_each(bronze, F.col("event_time").between(window.begin - reach, window.end + reach))
    due = F.coalesce(F.col("impression_time") + _interval(microseconds(reach)), F.col("click_time"))
    return attribute(events, events, settings.attribute).withColumn(
        "is_open", _is_open(due, _watermark(lake, ATTRIBUTE))
    )


def _sessions(settings: Settings, lake: Lake, bronze: DataFrame, window: Window) -> DataFrame:
    """All sessions that begin in the window, and some around it; ``is_open``: see :class:`Difference`.

    An event begins a session if the user was silent for the gap before it, so it is enough to look back that far. How
    long a session goes on nobody knows: so the events of its user are read to their end.
    """
    gap = settings.sessionize.gap
    events = _first_of_each(bronze, F.col("event_time") >= window.begin - gap)
    active = events.where(_within(F.col("event_time"), window)).select("user_id").distinct()
    sessions = sessionize(events.join(active, on="user_id", how="left_semi"), settings.sessionize)
    # Pieces that is_last cut from one window come out together, when the whole of it is over.
    of_user = Over.partitionBy("user_id").orderBy("session_start", "session_end")
    silence = F.unix_micros("session_start") - F.unix_micros(F.lag("session_end").over(of_user))
    is_first = F.coalesce(silence > microseconds(gap), F.lit(True))
    numbered = sessions.withColumn("piece_of", F.sum(is_first.cast("int")).over(of_user))
    ends = F.max("session_end").over(Over.partitionBy("user_id", "piece_of")) + _interval(microseconds(gap))
    return numbered.withColumn("is_open", _is_open(ends, _watermark(lake, SESSIONIZE))).drop("piece_of")


def _first_of_each(bronze: DataFrame, is_in_reach: Column) -> DataFrame:
    """The events in reach, each as it first came; a copy out of reach may have been the first."""
    good = bronze.where(F.col("verdict") == OK).drop("raw", "verdict")
    keys = good.where(is_in_reach).select(*KEY).distinct()
    arrival = Over.partitionBy(*KEY).orderBy("ingest_time", *_place())
    first = (
        good.join(keys, on=list(KEY), how="left_semi")
        .withColumn("arrival", F.row_number().over(arrival))
        .where(F.col("arrival") == 1)
    )
    return first.where(is_in_reach).drop("arrival", "source")


def _place() -> tuple[Column, Column]:
    """Where ``source`` says that a record lay, to sort by: its partition or file, and its offset there as a number."""
    parts = r"^(.*)(?:/|#bytes=)(\d+)(?:-\d+)?$"
    return F.regexp_extract("source", parts, 1), F.regexp_extract("source", parts, 2).try_cast("bigint")


def _named(rows: DataFrame, table: Table) -> DataFrame:
    """``rows`` with the columns that name them."""
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


def _interval(us: int) -> Column:
    return F.expr(f"INTERVAL {us} MICROSECOND")


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
