"""The evidence for the status of days that needs rows to be read: restatements by day, and rows that are still open."""

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.config.durations import time_of_us
from spark_jobs.contract.tables import RESTATEMENTS, SUMS
from spark_jobs.days.day import Day
from spark_jobs.days.evidence import DaysSnapshot
from spark_jobs.days.status import DayChange, TableProgress, passed
from spark_jobs.queries.campaign_stats.windows import sums
from spark_jobs.queries.notes import last_note
from spark_jobs.queries.query import Query
from spark_jobs.queries.registry import TABLES_BY_NAME, writer_of
from spark_jobs.queries.resume_point import ResumePoint
from spark_jobs.restatements.plan import ChangeOutcome
from spark_jobs.spark.event_times import first_event_time
from spark_jobs.spark.open_lake import OpenLake


def changes_since(lake: OpenLake, look: DaysSnapshot) -> list[DayChange]:
    """The changes by day since the first of the days that are not frozen was complete."""
    own = [day.repair for day in look.days if day.complete_at is not None and day.frozen_at is None]
    since = min([look.last_repair, *own])
    restated = lake.read(RESTATEMENTS, version=look.restatements_version).where(
        (F.col("repair") > since) & (F.col("outcome") == ChangeOutcome.APPLIED.value)
    )
    found = []
    for standing in look.standings:
        query = writer_of(TABLES_BY_NAME[standing.table])
        of_table = _by_day(restated.where(F.col("table_name") == standing.table), query, lake.settings.days.zone)
        found += [
            DayChange(standing.table, day, repair, time_of_us(us), *numbers)
            for day, repair, us, *numbers in of_table.collect()
        ]
    return found


def _by_day(restated: DataFrame, query: Query, zone: str) -> DataFrame:
    """``event_date``, ``repair``, ``decided_us``, ``rows``, and the differences of what is counted.

    A row that moves from one day to another changes both. Its differences count once, on the day it is recorded for.
    """
    dated = _dated(_dated(restated, "before", query, zone), "after", query, zone)
    dated = dated.withColumn("own_date", _date_in(F.col("row_time"), zone))
    dates = F.array_distinct(F.array_compact(F.array("own_date", "before_date", "after_date")))
    each = dated.withColumn("event_date", F.explode(dates))
    is_own = F.col("event_date") == F.col("own_date")
    valued = each.withColumns({name: F.when(is_own, F.coalesce(name, F.lit(0))).otherwise(F.lit(0)) for name in SUMS})
    decided = F.unix_micros(F.max("decided_at")).alias("decided_us")
    return valued.groupBy("event_date", "repair").agg(decided, F.count("*").alias("rows"), *sums())


def _date_in(time: Column, zone: str) -> Column:
    return F.to_date(F.from_utc_timestamp(time, zone))


def _dated(restated: DataFrame, side: str, query: Query, zone: str) -> DataFrame:
    """``restated`` with the date of the row whose JSON is in the column ``side``, null without one."""
    times = ", ".join(f"{column.name} TIMESTAMP" for column in query.writes.columns if column.sql_type == "TIMESTAMP")
    columns, date = restated.columns, _date_in(F.expr(query.correction().time), zone).alias(f"{side}_date")
    return restated.select(*columns, F.inline(F.array(F.from_json(side, times)))).select(*columns, date)


def first_open(lake: OpenLake, standing: TableProgress, days: Sequence[Day]) -> TableProgress:
    """``standing`` with the first event of rows that go on although the watermark has passed one of ``days``."""
    query = writer_of(TABLES_BY_NAME[standing.table])
    waiting = passed(days, standing)
    note = last_note(lake, query.name, until=standing.version)
    if not query.outlives_watermark or not waiting or note is None:
        return standing
    position = ResumePoint(lake, query, note)
    return replace(standing, open_since=first_event_time(query.open_events_since(position, waiting[0].start.date())))
