"""Every click joined to its impression, by id and within the attribution window.

::

    window 1h      ├──────────── counts ────────────┤
    impression i   12:00                          13:00
    click a        12:00 ✓ same instant
    click b              12:30 ✓
    click c                                       13:00 ✓ the end is part of the window
    click d                                        13:00:00.000001 ✗ orphan_click
    impression j   12:10 … no click by 13:10                  unclicked

    tolerance 2s   ├┤ counts too: two clocks differ, or an impression counts from when it was in view

*Watermark*: each side sees the time of *all* events before it drops those that are not its own: the common clock. So a
silent click topic cannot hold back an unclicked impression. Spark takes the slower of the two watermarks.
*State*: an impression until the watermark passes its time by the window, a click until the watermark passes its time by
the tolerance.
*Late rows*: dropped by Spark, counted in the ledger. On a lake that was never drained, an event in silver can be late
only if the watermark here is shorter than that of ``deduplicate``.
*Kept columns*: one map on either side, so a column that is kept later does not change the state.
*Cost*: native symmetric hash join.
"""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.config.durations import milliseconds
from spark_jobs.config.sections import AttributeSettings
from spark_jobs.config.sources import CLICK_SIDE
from spark_jobs.contract.events import CLICK, IMPRESSION
from spark_jobs.queries.kept_columns import kept_types, null_reference, packed, unpacked
from spark_jobs.spark.columns import after_watermark, amount, interval


def attribute(left: DataFrame, right: DataFrame, settings: AttributeSettings) -> DataFrame:
    """Joins the clicks of ``right`` to the impressions of ``left``.

    Args:
        left: streaming; the columns of ``silver/events``, heartbeats included.
        right: the same events, read a second time.
        settings: join type, watermarks, window and tolerance.

    Returns:
        The columns of ``gold/attributions``. Columns that sources keep follow: those of the impression by their name,
        those of the click as ``click_<name>``.

    Source: Spark's `Structured Streaming guide <https://spark.apache.org/docs/latest/streaming/>`_, outer joins with
    watermarking; the three outcomes are those of Google's Photon (SIGMOD 2013), which has no unclicked.
    """
    is_same = F.col("clicked_impression_id") == F.col("impression_id")
    is_match = is_same & is_in_time(F.col("click_time"), F.col("impression_time"), settings)
    pairs = _impressions(left, settings).join(_clicks(right, settings), on=is_match, how=settings.join.value)
    return _attributions(pairs, kept_types(left))


def is_in_time(click: Column, impression: Column, settings: AttributeSettings) -> Column:
    """Whether a click at the time ``click`` counts for its impression at the time ``impression``."""
    is_not_before = click + interval(settings.tolerance) >= impression
    return is_not_before & (click <= impression + interval(settings.window))


def _impressions(events: DataFrame, settings: AttributeSettings) -> DataFrame:
    side = events.select(
        F.col("event_type").alias("impression_type"),
        F.col("event_id").alias("impression_id"),
        F.col("event_time").alias("impression_time"),
        F.col("user_id").alias("impression_user_id"),
        F.col("campaign_id").alias("campaign_id"),
        F.col("ad_id").alias("ad_id"),
        amount("cost_micros").alias("cost_micros"),
        packed(events).alias("impression_kept"),
    ).withWatermark("impression_time", f"{milliseconds(settings.impression_watermark)} milliseconds")
    return side.where(after_watermark("impression_time", F.col("impression_type") == IMPRESSION)).drop(
        "impression_type"
    )


def _clicks(events: DataFrame, settings: AttributeSettings) -> DataFrame:
    side = events.select(
        F.col("event_type").alias("click_type"),
        F.col("event_id").alias("click_id"),
        F.col("event_time").alias("click_time"),
        F.col("user_id").alias("click_user_id"),
        # Never null: otherwise Spark infers a filter, pushes it below the watermark, and event time stands still.
        F.coalesce("impression_id", F.lit("")).alias("clicked_impression_id"),
        packed(events).alias("click_kept"),
    ).withWatermark("click_time", f"{milliseconds(settings.click_watermark)} milliseconds")
    return side.where(after_watermark("click_time", F.col("click_type") == CLICK)).drop("click_type")


def _attributions(pairs: DataFrame, kept: Mapping[str, str]) -> DataFrame:
    is_orphan, is_unclicked = F.col("impression_time").isNull(), F.col("click_time").isNull()
    delay_us = F.unix_micros("click_time") - F.unix_micros("impression_time")
    return pairs.select(
        F.when(is_orphan, F.lit("orphan_click"))
        .when(is_unclicked, F.lit("unclicked"))
        .otherwise(F.lit("clicked"))
        .alias("status"),
        F.coalesce("impression_id", "clicked_impression_id").alias("impression_id"),
        "impression_time",
        "campaign_id",
        "ad_id",
        F.coalesce(
            "impression_user_id", "click_user_id", null_reference("impression_kept"), null_reference("click_kept")
        ).alias("user_id"),
        "cost_micros",
        "click_id",
        "click_time",
        F.floor(delay_us / 1000).alias("click_delay_ms"),
        F.to_date(F.coalesce("impression_time", "click_time")).alias("event_date"),
        # Marks come later: see spark_jobs.queries.attribute.correction.
        F.lit(None).cast("array<string>").alias("invalid"),
        F.lit(None).cast("boolean").alias("invalid_impression"),
        *unpacked("impression_kept", kept),
        *unpacked("click_kept", kept, prefix=CLICK_SIDE),
    )
