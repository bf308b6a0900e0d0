"""Sums over the rows of campaign windows."""

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.contract.tables import CAMPAIGN_STATS, SUMS, VALID

KEY = ("window_start", "window_end", "campaign_id")
"""The key of ``gold/campaign_stats``, without the columns of ``campaign_stats.group_by``."""


def key_of(columns: Iterable[str]) -> list[str]:
    """The key of rows of ``gold/campaign_stats`` that have ``columns``."""
    return [*KEY, *CAMPAIGN_STATS.kept(columns)]


def sums() -> list[Column]:
    """The sums of the columns in :data:`SUMS`, under the same names."""
    return [F.sum(name).alias(name) for name in SUMS]


def cost_of(impressions: Column, cost: Column) -> Column:
    """The cost of a window: 0 without ``impressions``; ``cost``, null if none of them has one, with them."""
    return F.when(impressions > 0, cost).otherwise(F.lit(0))


def summed(rows: DataFrame) -> DataFrame:
    """The sums of ``rows`` (the columns of ``gold/campaign_stats``, not streaming, nothing marked): a row per key."""
    # The 0 of rows without impressions is no price.
    priced = rows.withColumn("cost_micros", F.when(F.col("impressions") > 0, F.col("cost_micros")))
    return with_rate(priced.groupBy(*key_of(rows.columns)).agg(*sums()))


def with_rate(rows: DataFrame) -> DataFrame:
    """``rows`` (key and sums) with all columns of ``gold/campaign_stats``; nothing is marked."""
    impressions = F.col("impressions")
    priced = rows.withColumn("cost_micros", cost_of(impressions, F.col("cost_micros")))
    net = {valid: F.col(name) for name, valid in zip(SUMS, VALID, strict=True)}
    rated = priced.withColumns({"ctr": rate(impressions, F.col("clicks")), **net})
    return rated.select(*CAMPAIGN_STATS.column_names, *CAMPAIGN_STATS.kept(rows.columns))


def rate(impressions: Column, clicks: Column) -> Column:
    """Clicks per impression (double); null without impressions."""
    return F.when(impressions > 0, clicks / impressions)
