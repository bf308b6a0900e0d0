"""The events in the state of a query, computed from tables: a reset rebuilds the state from them.

Each function uses what the query reads and what it has emitted. ``settled_before`` is the watermark of the query's last
batch: events behind it are decided, that is emitted or dropped as late.
"""

from datetime import datetime, timedelta

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from spark_jobs.contracts.durations import milliseconds
from spark_jobs.contracts.events import CLICK, HEARTBEAT, IMPRESSION
from spark_jobs.transforms.marks.marked import EVENT
from spark_jobs.transforms.visits import is_of_visit

KEY = ("event_type", "event_id")
"""The key of an event."""


def remembered_keys(silver: DataFrame, settled_before: datetime, delay: timedelta | None) -> DataFrame:
    """The events of silver whose repeats ``deduplicate`` must still recognize.

    Args:
        silver: all rows of silver.
        settled_before: see above.
        delay: ``deduplicate.watermark``, the longer of before and now; None: every event is remembered forever.

    Returns:
        The columns of silver.
    """
    events = silver.where(F.col("event_type") != HEARTBEAT)
    return events if delay is None else events.where(_is_after(F.col("event_time"), settled_before, delay))


def undecided_pairs(
    silver: DataFrame, attributions: DataFrame, settled_before: datetime, window: timedelta
) -> DataFrame:
    """The impressions and clicks that ``attribute`` still holds.

    That includes an impression that has been clicked while more clicks may arrive, and the click: it tells the join not
    to emit the impression as unclicked.

    Args:
        silver: all rows of silver.
        attributions: the rows emitted so far.
        settled_before: see above.
        window: ``attribute.window``, the longer of before and now.

    Returns:
        The columns of silver; includes the newest row, of whatever type.
    """
    shown = (F.col("impression_id").alias("event_id"), F.col("impression_time").alias("event_time"))
    clicked = (F.col("click_id").alias("event_id"), F.col("click_time").alias("event_time"))
    unclicked = attributions.where(F.col("status") == "unclicked").select(*shown)
    impressions = silver.where(
        (F.col("event_type") == IMPRESSION) & _is_after(F.col("event_time"), settled_before, window)
    ).join(unclicked, on=["event_id", "event_time"], how="left_anti")
    met = attributions.where(
        (F.col("status") == "clicked") & _is_after(F.col("impression_time"), settled_before, window)
    ).select(*clicked)
    orphans = attributions.where(F.col("status") == "orphan_click").select(*clicked)
    clicks = silver.where(F.col("event_type") == CLICK)
    is_open, own = _is_after(F.col("event_time"), settled_before), ["event_id", "event_time"]
    waiting = clicks.where(is_open).join(orphans, on=own, how="left_anti")
    known = clicks.where(~is_open).join(met, on=own, how="left_semi")
    return _union(silver, impressions, waiting, known, _newest(silver))


def open_sessions(
    silver: DataFrame,
    sessions: DataFrame,
    settled_before: datetime,
    gap: timedelta,
    initial: DataFrame | None = None,
) -> DataFrame:
    """The events of sessions that ``sessionize`` has not emitted yet.

    Events that are in no session although theirs can no longer be open were dropped as late.

    Args:
        silver: all rows of silver.
        sessions: the rows emitted so far.
        settled_before: see above.
        gap: ``sessionize.gap``, the longer of before and now.
        initial: the events that the query started with, beside those of silver; they have some of its columns.

    Returns:
        The columns of silver, null in events of ``initial`` that do not have them; includes the newest row of silver,
        of whatever type.
    """
    done = sessions.select(F.explode("events").alias("event")).select(*[f"event.{name}" for name in EVENT])
    events = silver.where(is_of_visit())
    if initial is not None:
        events = events.unionByName(initial, allowMissingColumns=True)
    left = events.join(done, on=list(EVENT), how="left_anti")
    in_order = Window.partitionBy("user_id").orderBy("event_time", "event_id")
    silence_us = F.unix_micros("event_time") - F.unix_micros(F.lag("event_time").over(in_order))
    is_new = F.coalesce(silence_us > milliseconds(gap) * 1000, F.lit(True))
    chains = left.withColumn("is_new", is_new.cast("int")).withColumn("chain", F.sum("is_new").over(in_order))
    last = F.max("event_time").over(Window.partitionBy("user_id", "chain"))
    still_open = chains.withColumn("last", last).where(_is_after(F.col("last"), settled_before, gap))
    return _union(silver, still_open, _newest(silver))


def pairs_apart(attributions: DataFrame, settled_before: datetime, before: timedelta, window: timedelta) -> DataFrame:
    """The emitted pairs of open impressions whose click is too late for ``window``, which is shorter than ``before``.

    Args:
        attributions: the rows emitted so far.
        settled_before: see above.
        before: ``attribute.window``, the longer of before and now.
        window: ``attribute.window`` from now on.

    Returns:
        ``event_type``, ``event_id`` and ``event_time`` of the click, ``impression_time``.
    """
    delay_us = F.unix_micros("click_time") - F.unix_micros("impression_time")
    is_apart = (F.col("status") == "clicked") & (delay_us > milliseconds(window) * 1000)
    return attributions.where(is_apart & _is_after(F.col("impression_time"), settled_before, before)).select(
        F.lit(CLICK).alias("event_type"),
        F.col("click_id").alias("event_id"),
        F.col("click_time").alias("event_time"),
        "impression_time",
    )


def moved_together(clicks: DataFrame, pairs: DataFrame) -> DataFrame:
    """``clicks`` (the columns of silver) with those of ``pairs`` moved to the time of their impression.

    So the join pairs them in spite of the shorter window, and emits neither impression nor click a second time.
    """
    time = F.coalesce("impression_time", "event_time").alias("event_time")
    others = [name for name in clicks.columns if name != "event_time"]
    return clicks.join(F.broadcast(pairs), on=list(EVENT), how="left").select(*others, time)


def events_since(silver: DataFrame, begin: datetime) -> DataFrame:
    """The events from ``begin`` on.

    Args:
        silver: all rows of silver.
        begin: a time with its zone.

    Returns:
        The columns of silver; includes the newest row, of whatever type.
    """
    is_since = F.unix_micros("event_time") >= F.lit(settled_us(begin))
    return _union(silver, silver.where((F.col("event_type") != HEARTBEAT) & is_since), _newest(silver))


def newest_heartbeat(silver: DataFrame) -> DataFrame:
    """The newest heartbeat of ``silver``, with its columns; no row if there is none."""
    return _union(silver, _newest(silver.where(F.col("event_type") == HEARTBEAT)))


def not_settled(silver: DataFrame, settled_before: datetime) -> DataFrame:
    """Exactly the events that the watermark has not passed, so none that a state function has decided already.

    Args:
        silver: all rows of silver.
        settled_before: see above.

    Returns:
        The columns of silver; includes the newest heartbeat, which the watermark may be derived from.
    """
    is_beat = F.col("event_type") == HEARTBEAT
    events = silver.where(~is_beat & ~is_settled(settled_before))
    return _union(silver, events, _newest(silver.where(is_beat)))


def is_settled(before: datetime) -> Column:
    """Whether the watermark ``before`` has passed the event; Spark drops rows with such a time."""
    return F.unix_micros("event_time") <= settled_us(before)


def settled_us(before: datetime) -> int:
    """The watermark ``before`` in microseconds since 1970, rounded down to milliseconds as Spark does."""
    return int(before.timestamp() * 1000) * 1000


def _newest(silver: DataFrame) -> DataFrame:
    """The row that the watermark is derived from, whatever its type."""
    return silver.orderBy(F.desc("event_time"), *KEY).limit(1)


def _is_after(time: Column, settled_before: datetime, more: timedelta = timedelta()) -> Column:
    """Whether ``time + more`` is not settled yet, or only by a millisecond."""
    bound_us = settled_us(settled_before) - (milliseconds(more) + 1) * 1000
    return F.unix_micros(time) >= F.lit(bound_us)


def _union(silver: DataFrame, *parts: DataFrame) -> DataFrame:
    first, *others = (part.select(*silver.columns) for part in parts)
    for other in others:
        first = first.unionByName(other)
    return first
