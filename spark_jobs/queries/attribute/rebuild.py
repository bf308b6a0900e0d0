"""The events that the join still holds, for a reset."""

from datetime import datetime, timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.config.durations import milliseconds
from spark_jobs.contract.events import CLICK, IMPRESSION
from spark_jobs.queries.open_events import is_after, newest, union
from spark_jobs.traffic_rules.kinds.common import EVENT


def undecided_pairs(
    silver: DataFrame, attributions: DataFrame, settled_before: datetime, window: timedelta
) -> DataFrame:
    """The impressions and clicks that ``attribute`` still holds.

    That includes an impression that has been clicked while more clicks may arrive, and the click, which keeps the join
    from emitting the impression as unclicked.

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
        (F.col("event_type") == IMPRESSION) & is_after(F.col("event_time"), settled_before, window)
    ).join(unclicked, on=["event_id", "event_time"], how="left_anti")
    met = attributions.where(
        (F.col("status") == "clicked") & is_after(F.col("impression_time"), settled_before, window)
    ).select(*clicked)
    orphans = attributions.where(F.col("status") == "orphan_click").select(*clicked)
    clicks = silver.where(F.col("event_type") == CLICK)
    is_open, own = is_after(F.col("event_time"), settled_before), ["event_id", "event_time"]
    waiting = clicks.where(is_open).join(orphans, on=own, how="left_anti")
    known = clicks.where(~is_open).join(met, on=own, how="left_semi")
    return union(silver, impressions, waiting, known, newest(silver))


def split_pairs(attributions: DataFrame, settled_before: datetime, before: timedelta, window: timedelta) -> DataFrame:
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
    return attributions.where(is_apart & is_after(F.col("impression_time"), settled_before, before)).select(
        F.lit(CLICK).alias("event_type"),
        F.col("click_id").alias("event_id"),
        F.col("click_time").alias("event_time"),
        "impression_time",
    )


def rejoin_pairs(clicks: DataFrame, pairs: DataFrame) -> DataFrame:
    """``clicks`` (the columns of silver) with those of ``pairs`` moved to the time of their impression.

    So the join pairs them in spite of the shorter window, and emits neither impression nor click a second time.
    """
    time = F.coalesce("impression_time", "event_time").alias("event_time")
    others = [name for name in clicks.columns if name != "event_time"]
    return clicks.join(F.broadcast(pairs), on=list(EVENT), how="left").select(*others, time)
