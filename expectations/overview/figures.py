"""The numbers behind the charts: small aggregates of the tables, computed by Spark."""

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from expectations.charts import Records
from spark_jobs.contract.tables import ATTRIBUTIONS, BRONZE_EVENTS, SESSIONS, USER_STATUS, Table
from spark_jobs.ingest.quarantine import in_quarantine
from spark_jobs.ledger.ledger_files import last_ledger
from spark_jobs.ledger.model import Ledger
from spark_jobs.queries.user_status.operator import in_order
from spark_jobs.spark.open_lake import OpenLake

_CAMPAIGNS = 6
"""How many campaigns get a line of their own."""
_MOST_POINTS = 200
_DELAY_BOUNDS_S = (0, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600)
_LENGTH_BOUNDS_S = (0, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200)
_MINUTE_S, _HOUR_S = 60, 3600


@dataclass(frozen=True)
class Figures:
    """Everything the page shows; a list is empty where there is no data.

    Attributes:
        ledger: as last updated; None without one.
        totals: ``impressions``, ``clicks``, ``cost_micros``, ``sessions``, ``users``.
        verdicts: ``verdict``, ``records``, for records that are still in quarantine.
        campaigns: ``time`` (ISO), ``campaign``, ``impressions``, ``clicks``, ``ctr``, by impression time.
        delays: ``length`` (from impression to click), ``order``, ``clicks``.
        lengths: ``length`` (of a session), ``order``, ``sessions``.
        endings: ``ended_by``, ``sessions``.
        status: ``status``, ``users``, by each user's latest status.
    """

    ledger: Ledger | None
    totals: dict[str, int]
    verdicts: Records
    campaigns: Records
    delays: Records
    lengths: Records
    endings: Records
    status: Records


def count_figures(lake: OpenLake) -> Figures:
    """The figures of ``lake``; a table that is missing counts as empty.

    Args:
        lake: the lake whose tables to count.
    """

    def rows(table: Table) -> DataFrame:
        if lake.has(table):
            return lake.read(table)
        return lake.spark.createDataFrame([], table.ddl)

    attributions, sessions = rows(ATTRIBUTIONS).cache(), rows(SESSIONS).drop("events").cache()
    impressions = _impressions(attributions).cache()
    try:
        return Figures(
            ledger=last_ledger(lake),
            totals=_totals(impressions, sessions),
            verdicts=_records(in_quarantine(rows(BRONZE_EVENTS)).groupBy("verdict").agg(F.count("*").alias("records"))),
            campaigns=_campaigns(impressions),
            delays=_binned(
                attributions.where("status = 'clicked'"), F.col("click_delay_ms") / 1000, _DELAY_BOUNDS_S, "clicks"
            ),
            lengths=_binned(
                sessions,
                F.unix_seconds("session_end") - F.unix_seconds("session_start"),
                _LENGTH_BOUNDS_S,
                "sessions",
            ),
            endings=_records(sessions.groupBy("ended_by").agg(F.count("*").alias("sessions"))),
            status=_status(rows(USER_STATUS)),
        )
    finally:
        for cached in (impressions, attributions, sessions):
            cached.unpersist()


def _records(rows: DataFrame) -> Records:
    return sorted((row.asDict() for row in rows.collect()), key=lambda row: [str(value) for value in row.values()])


def _impressions(attributions: DataFrame) -> DataFrame:
    """One row per impression; in attributions an impression with several clicks has several rows."""
    known = attributions.where("impression_id IS NOT NULL AND impression_time IS NOT NULL")
    return known.groupBy("impression_id").agg(
        F.first("impression_time").alias("impression_time"),
        F.first("campaign_id").alias("campaign"),
        F.first("cost_micros").alias("cost_micros"),
        F.count("click_id").alias("clicks"),
    )


def _totals(impressions: DataFrame, sessions: DataFrame) -> dict[str, int]:
    shown = impressions.agg(
        F.count("*").alias("impressions"),
        F.coalesce(F.sum("clicks"), F.lit(0)).alias("clicks"),
        F.coalesce(F.sum("cost_micros"), F.lit(0)).alias("cost_micros"),
    )
    grouped = sessions.agg(F.count("*").alias("sessions"), F.count_distinct("user_id").alias("users"))
    (totals,) = shown.crossJoin(grouped).collect()
    return {name: int(value) for name, value in totals.asDict().items()}


def _campaigns(impressions: DataFrame) -> Records:
    bounds = impressions.agg(
        F.unix_seconds(F.min("impression_time")).alias("first"), F.unix_seconds(F.max("impression_time")).alias("last")
    ).first()
    if bounds is None or bounds["first"] is None:
        return []
    # One hour per point, or more where that keeps the chart readable.
    hours = max(1, (bounds["last"] - bounds["first"]) // 3600 // _MOST_POINTS + 1)
    most_seen = impressions.groupBy("campaign").count().orderBy(F.desc("count"), "campaign").limit(_CAMPAIGNS)
    named = [row["campaign"] for row in most_seen.collect()]
    width = hours * 3600
    start = F.timestamp_seconds(F.floor(F.unix_seconds("impression_time") / width) * width)
    counted = (
        impressions.select(
            F.date_format(start, "yyyy-MM-dd'T'HH:mm:ss'Z'").alias("time"),
            F.when(F.col("campaign").isin(named), F.col("campaign")).otherwise(F.lit("others")).alias("campaign"),
            "clicks",
        )
        .groupBy("time", "campaign")
        .agg(F.count("*").alias("impressions"), F.sum("clicks").alias("clicks"))
    )
    return _records(counted.withColumn("ctr", F.col("clicks") / F.col("impressions")))


def _binned(rows: DataFrame, seconds: Column, bounds: tuple[int, ...], name: str) -> Records:
    """Counts ``rows`` between neighbouring ``bounds`` (seconds), from the first bin to the last non-empty one.

    Returns:
        ``length`` (text), ``order``, and the count as ``name``.
    """
    order = F.lit(0)
    for number, bound in enumerate(bounds[1:], start=1):
        order = F.when(seconds >= bound, F.lit(number)).otherwise(order)
    found = {row["order"]: row["count"] for row in rows.groupBy(order.alias("order")).count().collect()}
    last = max(found, default=-1)
    return [{"length": _between(bounds, at), "order": at, name: found.get(at, 0)} for at in range(last + 1)]


def _between(bounds: tuple[int, ...], number: int) -> str:
    first = bounds[number]
    if number + 1 == len(bounds):
        return f"{first // _HOUR_S} h or more"
    last = bounds[number + 1]
    if last <= _MINUTE_S:
        return f"{first} to {last} s"
    if last <= _HOUR_S:
        return f"{first // _MINUTE_S} to {last // _MINUTE_S} min"
    return f"{first // _HOUR_S} to {last // _HOUR_S} h"


def _status(changes: DataFrame) -> Records:
    newest = changes.groupBy("user_id").agg(F.max_by("status", in_order()).alias("status"))
    return _records(newest.groupBy("status").agg(F.count("*").alias("users")))
