"""Which events a query had taken in and not yet let go of: what the state of a new checkpoint is rebuilt from.

Each is computed at rest, from the tables alone: from what the query reads, and what it has put out. ``settled_before``
is the watermark of its last batch: what lies behind it was decided, put out or dropped as late.
"""

from datetime import datetime, timedelta

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from spark_jobs.contracts.durations import milliseconds
from spark_jobs.contracts.events import CLICK, HEARTBEAT, IMPRESSION

KEY = ("event_type", "event_id")
"""What an event is known by."""


def remembered_keys(silver: DataFrame, settled_before: datetime, delay: timedelta | None) -> DataFrame:
    """The events of silver whose repeats ``deduplicate`` must still know.

    Args:
        silver: all rows of silver.
        settled_before: see above.
        delay: ``deduplicate.watermark``, the longer one of before and now; None: every event is remembered for ever.

    Returns:
        The columns of silver.
    """
    events = silver.where(F.col("event_type") != HEARTBEAT)
    return events if delay is None else events.where(_is_after(F.col("event_time"), settled_before, delay))


def undecided_pairs(
    silver: DataFrame, attributions: DataFrame, settled_before: datetime, window: timedelta
) -> DataFrame:
    """The impressions and clicks that ``attribute`` still holds.

    An impression that a click has met already is among them while more clicks may come, and so is that click: from it
    the join knows that the impression is not to come out as unclicked.

    Args:
        silver: all rows of silver.
        attributions: what was put out.
        settled_before: see above.
        window: ``attribute.window``, the longer one of before and now.

    Returns:
        The columns of silver; the newest row, whatever it is, included.
    """
    unclicked = attributions.where(F.col("status") == "unclicked").select(F.col("impression_id").alias("event_id"))
    impressions = silver.where(
        (F.col("event_type") == IMPRESSION) & _is_after(F.col("event_time"), settled_before, window)
    ).join(unclicked, on="event_id", how="left_anti")
    met = attributions.where(
        (F.col("status") == "clicked") & _is_after(F.col("impression_time"), settled_before, window)
    ).select(F.col("click_id").alias("event_id"))
    orphans = attributions.where(F.col("status") == "orphan_click").select(F.col("click_id").alias("event_id"))
    clicks = silver.where(F.col("event_type") == CLICK)
    waiting = clicks.where(_is_after(F.col("event_time"), settled_before)).join(orphans, on="event_id", how="left_anti")
    known = clicks.where(~_is_after(F.col("event_time"), settled_before)).join(met, on="event_id", how="left_semi")
    return _union(silver, impressions, waiting, known, _newest(silver))


def open_sessions(silver: DataFrame, sessions: DataFrame, settled_before: datetime, gap: timedelta) -> DataFrame:
    """The events of sessions that ``sessionize`` has not put out.

    Events that are in no session and lie further behind than a session could still be open were dropped as late.

    Args:
        silver: all rows of silver.
        sessions: what was put out.
        settled_before: see above.
        gap: ``sessionize.gap``, the longer one of before and now.

    Returns:
        The columns of silver; the newest row, whatever it is, included.
    """
    done = sessions.select(F.explode("events").alias("event")).select("event.event_type", "event.event_id")
    left = silver.where(F.col("event_type") != HEARTBEAT).join(done, on=list(KEY), how="left_anti")
    in_order = Window.partitionBy("user_id").orderBy("event_time", "event_id")
    silence_us = F.unix_micros("event_time") - F.unix_micros(F.lag("event_time").over(in_order))
    is_new = F.coalesce(silence_us > milliseconds(gap) * 1000, F.lit(True))
    chains = left.withColumn("is_new", is_new.cast("int")).withColumn("chain", F.sum("is_new").over(in_order))
    last = F.max("event_time").over(Window.partitionBy("user_id", "chain"))
    still_open = chains.withColumn("last", last).where(_is_after(F.col("last"), settled_before, gap))
    return _union(silver, still_open, _newest(silver))


def within_reach(silver: DataFrame, settled_before: datetime, reach: timedelta) -> DataFrame:
    """The events that lie behind the watermark by no more than ``reach``, and those before it; some others, too.

    Args:
        silver: all rows of silver.
        settled_before: see above.
        reach: how far behind it an event can still matter.

    Returns:
        The columns of silver; the newest row, whatever it is, included.
    """
    events = silver.where(F.col("event_type") != HEARTBEAT)
    return _union(silver, events.where(_is_after(F.col("event_time"), settled_before, reach)), _newest(silver))


def not_settled(silver: DataFrame, settled_before: datetime) -> DataFrame:
    """Just the events that the watermark has not passed; none that a state function has decided already.

    Args:
        silver: all rows of silver.
        settled_before: see above.

    Returns:
        The columns of silver; the newest heartbeat, which may be what the watermark is counted from, included.
    """
    is_beat = F.col("event_type") == HEARTBEAT
    events = silver.where(~is_beat & ~is_settled(settled_before))
    return _union(silver, events, _newest(silver.where(is_beat)))


def is_settled(before: datetime) -> Column:
    """Whether the watermark ``before`` has passed the event: Spark drops what comes with such a time."""
    return F.unix_micros("event_time") <= settled_us(before)


def settled_us(before: datetime) -> int:
    """The watermark ``before`` in microseconds since 1970, to the millisecond that Spark counts watermarks in."""
    return int(before.timestamp() * 1000) * 1000


def _newest(silver: DataFrame) -> DataFrame:
    """The row that the watermark is counted from, whatever its type."""
    return silver.orderBy(F.desc("event_time")).limit(1)


def _is_after(time: Column, settled_before: datetime, more: timedelta = timedelta()) -> Column:
    """Whether ``time`` and ``more`` is not settled yet, or has been for a millisecond."""
    bound_us = settled_us(settled_before) - (milliseconds(more) + 1) * 1000
    return F.unix_micros(time) >= F.lit(bound_us)


def _union(silver: DataFrame, *parts: DataFrame) -> DataFrame:
    first, *others = (part.select(*silver.columns) for part in parts)
    for other in others:
        first = first.unionByName(other)
    return first
