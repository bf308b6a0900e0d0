"""Counts restatements: small aggregates of ``gold/restatements``, computed by Spark."""

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from expectations.bars import count_bars
from expectations.intervals import interval_between
from expectations.restated.figures import CampaignChanges, RestatedFigures, TableChanges
from expectations.timelines import Timelines
from spark_jobs.config.durations import time_of_us
from spark_jobs.contract.tables import CAMPAIGN_STATS, RESTATEMENTS, SUMS
from spark_jobs.queries.campaign_stats.windows import sums
from spark_jobs.restatements.plan import ChangeOutcome
from spark_jobs.spark.open_lake import OpenLake

_MOST_CAMPAIGNS = 10


def count_restated(lake: OpenLake) -> RestatedFigures | None:
    """The figures of the restatements of ``lake``; None if nothing was ever restated."""
    if not lake.has(RESTATEMENTS):
        return None
    rows = lake.read(RESTATEMENTS)
    (ends,) = rows.agg(
        F.unix_micros(F.min("decided_at")), F.unix_micros(F.max("decided_at")), F.count_distinct("decided_at")
    ).collect()
    if ends[0] is None:
        return None
    first, last = time_of_us(ends[0]), time_of_us(ends[1])
    interval = interval_between(first, last)
    campaigns = _campaigns(rows)
    return RestatedFigures(
        runs=ends[2],
        last=last,
        tables=_tables(rows),
        campaigns=tuple(campaigns[:_MOST_CAMPAIGNS]),
        campaign_count=len(campaigns),
        total=CampaignChanges("", *(sum(getattr(one, name) for one in campaigns) for name in SUMS)),
        timelines=Timelines(count_bars(_applied(rows), "decided_at", "table_name", "cause", interval), interval, last),
    )


def _tables(rows: DataFrame) -> tuple[TableChanges, ...]:
    counted = rows.groupBy("table_name").agg(
        *[
            F.count_if((F.col("change") == change) & (F.col("outcome") == ChangeOutcome.APPLIED.value)).alias(change)
            for change in ("insert", "update", "delete")
        ],
        F.count_if(F.col("outcome") == ChangeOutcome.FROZEN.value).alias("frozen"),
    )
    return tuple(TableChanges(*row) for row in counted.orderBy("table_name").collect())


def _campaigns(rows: DataFrame) -> list[CampaignChanges]:
    """The changes of each campaign, by one table: others count the same impressions and clicks."""
    of_windows = _applied(rows).where(F.col("table_name") == CAMPAIGN_STATS.name)
    summed = of_windows.groupBy("campaign_id").agg(*sums()).collect()
    found = [_campaign(row) for row in summed]
    changed = [one for one in found if one.impressions or one.clicks or one.cost_micros]
    return sorted(changed, key=lambda one: (-abs(one.cost_micros), -abs(one.clicks), one.campaign))


def _campaign(row: Row) -> CampaignChanges:
    return CampaignChanges(row["campaign_id"] or "", *(int(row[name] or 0) for name in SUMS))


def _applied(rows: DataFrame) -> DataFrame:
    return rows.where(F.col("outcome") == ChangeOutcome.APPLIED.value)
