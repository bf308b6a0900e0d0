"""Impressions, clicks and cost of each campaign in windows of event time.

::

    window 10min   12:00 ──────────────── 12:10 ──────────────── 12:20
    campaign c1      i1 cost 250    i2 cost 100     k1 → i1
                   2 impressions, 0 clicks, 350   0 impressions, 1 click, 0, ctr null

A click names no campaign: it belongs to that of its impression, to which it is joined by id within the attribution
window, and it counts at its own time. So a click counts here if and only if it is ``clicked`` in ``gold/attributions``,
lateness apart. If ``slide`` is shorter than ``window``, an event counts in each window that contains it.

*Watermark*: the largest time of *all* events minus ``campaign_stats.watermark``: the common clock.
*Final*: with ``append`` a window is emitted once the watermark has passed its end by the attribution window:
impressions wait that long for clicks, and Spark delays the operators after the join by the same time. With ``update`` a
row is emitted for each event at once, and the table adds them up.
*State*: impressions for the length of the attribution window, clicks until the watermark passes them, and with
``append`` a row per campaign and open window.
*Late rows*: Spark drops a click behind the watermark; an impression counts as long as its window is open.
*Columns that sources keep* (``campaign_stats.group_by``) can be grouped by as well; a click counts with those of its
impression.
*Cost*: native join and aggregation.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.config.choices import StatsOutput
from spark_jobs.config.durations import microseconds, milliseconds
from spark_jobs.config.sections import AttributeSettings, CampaignStatsSettings
from spark_jobs.contract.events import CLICK, IMPRESSION
from spark_jobs.contract.tables import SUMS
from spark_jobs.queries.attribute.operator import is_in_time
from spark_jobs.queries.campaign_stats.windows import sums, with_rate
from spark_jobs.queries.kept_columns import with_columns
from spark_jobs.spark.columns import after_watermark, amount

_NO_GROUPS: Mapping[str, str] = MappingProxyType({})


def campaign_stats(
    impressions: DataFrame,
    clicked: DataFrame,
    clicks: DataFrame,
    settings: CampaignStatsSettings,
    join: AttributeSettings,
    groups: Mapping[str, str] = _NO_GROUPS,
) -> DataFrame:
    """The windows of each campaign.

    Args:
        impressions: streaming; the columns of ``silver/events``, heartbeats included: the impressions to count.
        clicked: the same events, read a second time: the impressions that clicks refer to.
        clicks: the same events, read a third time: the clicks to count.
        settings: windows, watermark and output.
        join: window and tolerance.
        groups: columns of impressions to group by besides the campaign, each with its type in Spark SQL; missing
            columns are null.

    Returns:
        The columns of ``gold/campaign_stats``, and ``groups``. With ``append`` a row per final window. With ``update``
        a row per event and window that contains it, to be added up: see
        :func:`spark_jobs.queries.campaign_stats.windows.summed`.

    Source: Spark's `Structured Streaming guide <https://spark.apache.org/docs/latest/streaming/>`_, window operations
    and chained stateful operators.
    """
    delay = f"{milliseconds(settings.watermark)} milliseconds"
    by = ("campaign_id", *groups)
    shown = (
        with_columns(impressions, groups)
        .withWatermark("event_time", delay)
        .where(after_watermark("event_time", F.col("event_type") == IMPRESSION))
    )
    pairs = _clicks(with_columns(clicked, groups), clicks, delay, join, by)
    counted = _counted(shown, by, impressions=1, cost=amount("cost_micros")).unionByName(
        _counted(pairs, by, impressions=0, cost=F.lit(None))
    )
    window = windows(settings).alias("window")
    if settings.output is StatsOutput.UPDATE:
        return _named(counted.select(window, *by, *SUMS), by)
    return _named(counted.groupBy(window, *by).agg(*sums()), by)


def _clicks(clicked: DataFrame, clicks: DataFrame, delay: str, join: AttributeSettings, by: Sequence[str]) -> DataFrame:
    """``event_time`` of each click that counts for an impression that is known, with the impression's ``by``."""
    left = (
        clicked.select(
            F.col("event_type").alias("impression_type"),
            F.col("event_id").alias("impression_id"),
            F.col("event_time").alias("impression_time"),
            *by,
        )
        .withWatermark("impression_time", delay)
        .where(after_watermark("impression_time", F.col("impression_type") == IMPRESSION))
    )
    right = (
        # Never null: otherwise Spark infers a filter, pushes it below the watermark, and event time stands still.
        clicks.select("event_type", "event_time", F.coalesce("impression_id", F.lit("")).alias("clicked_impression_id"))
        .withWatermark("event_time", delay)
        .where(after_watermark("event_time", F.col("event_type") == CLICK))
    )
    is_same = F.col("clicked_impression_id") == F.col("impression_id")
    is_match = is_same & is_in_time(F.col("event_time"), F.col("impression_time"), join)
    return left.join(right, on=is_match, how="inner").select("event_time", *by)


def _counted(events: DataFrame, by: Sequence[str], *, impressions: int, cost: Column) -> DataFrame:
    """The sums that each of ``events`` adds to its window."""
    return events.select(
        "event_time",
        *by,
        F.lit(impressions).cast("bigint").alias("impressions"),
        F.lit(1 - impressions).cast("bigint").alias("clicks"),
        cost.cast("bigint").alias("cost_micros"),
    )


def _named(windows: DataFrame, by: Sequence[str]) -> DataFrame:
    bounds = windows.select(
        F.col("window.start").alias("window_start"), F.col("window.end").alias("window_end"), *by, *SUMS
    )
    return with_rate(bounds)


def windows(settings: CampaignStatsSettings) -> Column:
    """The windows that ``event_time`` lies in: structs of ``start`` and ``end``, a row for each."""
    length, slide = (f"{microseconds(duration)} microseconds" for duration in (settings.window, settings.slide))
    return F.window("event_time", length, slide)
