"""The events that the join still holds, for a reset."""

from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.config.sections import AttributeSettings
from spark_jobs.contract.events import CLICK, IMPRESSION
from spark_jobs.queries.attribute.operator import is_in_time
from spark_jobs.queries.open_events import is_after, newest, union
from spark_jobs.traffic_rules.kinds.common import EVENT


def undecided_pairs(
    silver: DataFrame, attributions: DataFrame, settled_before: datetime, longest: AttributeSettings
) -> DataFrame:
    """The impressions and clicks that ``attribute`` still holds.

    That includes an impression that has been clicked while more clicks may arrive, and the click, which keeps the join
    from emitting the impression as unclicked. A click whose impression is closed is decided, although an impression up
    to the tolerance later might come.

    Args:
        silver: its rows, at least those of pairs with an open impression or click.
        attributions: the rows emitted so far, at least for these.
        settled_before: see above.
        longest: the longer of before and now of ``window`` and ``tolerance``.

    Returns:
        The columns of silver; includes the newest row, of whatever type.
    """
    shown = (F.col("impression_id").alias("event_id"), F.col("impression_time").alias("event_time"))
    clicked = (F.col("click_id").alias("event_id"), F.col("click_time").alias("event_time"))
    unclicked = attributions.where(F.col("status") == "unclicked").select(*shown)
    impressions = silver.where(
        (F.col("event_type") == IMPRESSION) & is_after(F.col("event_time"), settled_before, longest.window)
    ).join(unclicked, on=["event_id", "event_time"], how="left_anti")
    pairs = attributions.where(F.col("status") == "clicked")
    is_pair_open = is_after(F.col("impression_time"), settled_before, longest.window)
    met, decided = pairs.where(is_pair_open).select(*clicked), pairs.where(~is_pair_open).select(*clicked)
    orphans = attributions.where(F.col("status") == "orphan_click").select(*clicked)
    clicks = silver.where(F.col("event_type") == CLICK)
    is_open = is_after(F.col("event_time"), settled_before, longest.tolerance)
    own = ["event_id", "event_time"]
    waiting = clicks.where(is_open).join(orphans.unionByName(decided), on=own, how="left_anti")
    known = clicks.where(~is_open).join(met, on=own, how="left_semi")
    return union(silver, impressions, waiting, known, newest(silver))


def split_pairs(
    attributions: DataFrame, settled_before: datetime, longest: AttributeSettings, settings: AttributeSettings
) -> DataFrame:
    """The emitted pairs of open impressions whose click is too late for ``window`` now, or too early.

    Args:
        attributions: the rows emitted so far.
        settled_before: see above.
        longest: the longer of before and now of ``window`` and ``tolerance``.
        settings: from now on.

    Returns:
        ``event_type``, ``event_id`` and ``event_time`` of the click, ``impression_time``.
    """
    is_in = is_in_time(F.col("click_time"), F.col("impression_time"), settings)
    is_apart = (F.col("status") == "clicked") & ~is_in
    return attributions.where(is_apart & is_after(F.col("impression_time"), settled_before, longest.window)).select(
        F.lit(CLICK).alias("event_type"),
        F.col("click_id").alias("event_id"),
        F.col("click_time").alias("event_time"),
        "impression_time",
    )


def rejoin_pairs(clicks: DataFrame, pairs: DataFrame) -> DataFrame:
    """``clicks`` (the columns of silver) with those of ``pairs`` moved to the time of their impression.

    So the join pairs them in spite of the shorter window or tolerance, and emits neither event a second time.
    """
    time = F.coalesce("impression_time", "event_time").alias("event_time")
    others = [name for name in clicks.columns if name != "event_time"]
    return clicks.join(F.broadcast(pairs), on=list(EVENT), how="left").select(*others, time)
