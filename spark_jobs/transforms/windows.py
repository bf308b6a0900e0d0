"""Adding up the rows of campaigns' windows."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.contracts.tables import CAMPAIGN_STATS

KEY = ("window_start", "window_end", "campaign_id")
"""What names a row of ``gold/campaign_stats``."""
SUMS = ("impressions", "clicks", "cost_micros")
"""Its columns that add up."""


def sums() -> list[Column]:
    """The sums of the columns that add up, by their own names."""
    return [F.sum(name).alias(name) for name in SUMS]


def summed(rows: DataFrame) -> DataFrame:
    """``rows`` (the columns of ``gold/campaign_stats``) at rest, added up: one for each window and campaign."""
    return with_rate(rows.groupBy(*KEY).agg(*sums()))


def with_rate(rows: DataFrame) -> DataFrame:
    """``rows`` with the columns of ``gold/campaign_stats``, from those that add up."""
    return rows.withColumn("ctr", rate(F.col("impressions"), F.col("clicks"))).select(*CAMPAIGN_STATS.column_names)


def rate(impressions: Column, clicks: Column) -> Column:
    """Clicks per impression (double); null where there is no impression."""
    return F.when(impressions > 0, clicks / impressions)
