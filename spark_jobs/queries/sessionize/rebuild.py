"""The sessions that are still open, for a reset."""

from datetime import datetime

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from spark_jobs.config.durations import milliseconds
from spark_jobs.config.sections import SessionizeSettings
from spark_jobs.queries.open_events import chain_key, is_after, is_of_visit, newest, union
from spark_jobs.traffic_rules.kinds.common import EVENT


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
        silver: all rows of silver.
        sessions: the rows emitted so far.
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
