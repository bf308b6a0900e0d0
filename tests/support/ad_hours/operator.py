"""Impressions of each ad by hour."""

from datetime import datetime, timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.config.durations import milliseconds
from spark_jobs.contract.events import IMPRESSION
from spark_jobs.queries.open_events import events_since
from spark_jobs.spark.columns import after_watermark

_HOUR = timedelta(hours=1)


def ad_hours(events: DataFrame, watermark: timedelta) -> DataFrame:
    """``hour``, ``ad_id``, ``impressions`` from ``events`` (streaming; the columns of silver)."""
    timed = events.withWatermark("event_time", f"{milliseconds(watermark)} milliseconds")
    shown = timed.where(after_watermark("event_time", F.col("event_type") == IMPRESSION))
    counted = shown.groupBy(F.window("event_time", "1 hour").alias("window"), "ad_id").agg(
        F.count("*").alias("impressions")
    )
    return counted.select(F.col("window.start").alias("hour"), "ad_id", "impressions")


def in_open_hours(silver: DataFrame, settled_before: datetime) -> DataFrame:
    """The events of hours that the watermark has not passed, and the newest row."""
    ends = F.date_trunc("hour", "event_time") + F.expr("INTERVAL 1 HOUR")
    return events_since(silver, settled_before - _HOUR).where(ends > F.lit(settled_before))
