"""The sessions that are still open, for a reset."""

from datetime import date, datetime, timedelta

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from spark_jobs.config.durations import milliseconds
from spark_jobs.config.sections import SessionizeSettings
from spark_jobs.contract.tables import SESSIONS, SILVER_EVENTS
from spark_jobs.queries.open_events import chain_key, is_after, is_of_visit, newest, union
from spark_jobs.queries.resume_point import ResumePoint
from spark_jobs.spark.columns import interval
from spark_jobs.traffic_rules.kinds.common import EVENT


def all_open_sessions(at: ResumePoint, settings: SessionizeSettings) -> DataFrame:
    """The events of all sessions that ``sessionize`` has not emitted yet: see :func:`open_sessions`.

    One may have begun long ago: twice as many days are read until none that is open reaches back to the first of them.
    """
    horizon, initial = settings.gap + timedelta(days=1), at.read_initial()
    while initial is None and (first := at.first_day(horizon)):
        found = open_sessions_since(at, settings, first).localCheckpoint()
        reaches = F.min("event_time") - interval(settings.gap) < F.lit(first).cast("timestamp")
        if not found.where(is_of_visit()).agg(F.coalesce(reaches, F.lit(False)).alias("reaches")).collect()[0].reaches:
            return found
        horizon *= 2
    return open_sessions(at.read(SILVER_EVENTS), at.read(SESSIONS), at.settled_before, settings, initial)


def open_sessions_since(at: ResumePoint, settings: SessionizeSettings, day: date) -> DataFrame:
    """The events from ``day`` on of such sessions, and of the initial state."""
    silver = at.read(SILVER_EVENTS).where(F.col("event_date") >= F.lit(day))
    sessions = at.read(SESSIONS).where(F.col("session_end") >= F.lit(day).cast("timestamp"))
    return open_sessions(silver, sessions, at.settled_before, settings, at.read_initial())


def open_sessions(
    silver: DataFrame,
    sessions: DataFrame,
    settled_before: datetime,
    settings: SessionizeSettings,
    initial: DataFrame | None = None,
) -> DataFrame:
    """The events of sessions that ``sessionize`` has not emitted yet.

    Events that are in no session, although their session must have ended, were dropped as late.

    Args:
        silver: all rows of silver, or those from some day on: sessions then have their events since.
        sessions: the rows emitted so far, at least those of these events.
        settled_before: see above.
        settings: the longer gap of before and now, and the cuts of before.
        initial: the events that the query started with, besides those of silver; they have some of its columns.

    Returns:
        The columns of silver, null in events of ``initial`` that do not have them; includes the newest row of silver,
        of whatever type.
    """
    done = sessions.select(F.explode("events").alias("event")).select(*[f"event.{name}" for name in EVENT])
    events = silver.where(is_of_visit())
    if initial is not None:
        events = events.unionByName(initial, allowMissingColumns=True)
    left = events.join(done, on=list(EVENT), how="left_anti")
    gap, key = settings.gap, chain_key(settings.longest)
    in_order = Window.partitionBy(*key).orderBy("event_time", "event_id")
    silence_us = F.unix_micros("event_time") - F.unix_micros(F.lag("event_time").over(in_order))
    is_new = F.coalesce(silence_us > milliseconds(gap) * 1000, F.lit(True))
    chains = left.withColumn("is_new", is_new.cast("int")).withColumn("chain", F.sum("is_new").over(in_order))
    last = F.max("event_time").over(Window.partitionBy(*key, "chain"))
    still_open = chains.withColumn("last", last).where(is_after(F.col("last"), settled_before, gap))
    return union(silver, still_open, newest(silver))
