"""The times of the events in some rows."""

from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.config.durations import time_of_us


def newest_event_time(events: DataFrame) -> datetime | None:
    """The largest ``event_time`` of ``events``, with its zone (UTC), to the microsecond; None without events."""
    (newest_us,) = events.agg(F.unix_micros(F.max("event_time"))).first() or (None,)
    return None if newest_us is None else time_of_us(newest_us)


def first_event_time(events: DataFrame) -> datetime | None:
    """The smallest ``event_time`` of ``events``, as :func:`newest_event_time` gives the largest."""
    (first_us,) = events.agg(F.unix_micros(F.min("event_time"))).first() or (None,)
    return None if first_us is None else time_of_us(first_us)
