"""Chains: a user's events, each within a gap of the previous one. A late event joins, lengthens or begins one."""

from collections.abc import Callable, Sequence
from datetime import date, timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as Over
from pyspark.sql import functions as F

from spark_jobs.config.durations import microseconds
from spark_jobs.queries.correction import GROUP, CorrectionInput
from spark_jobs.queries.open_events import chain_key, is_of_visit
from spark_jobs.spark.columns import dates_of, in_order, interval
from spark_jobs.traffic_rules.kinds.common import EVENT

CHAIN_START, CHAIN_END = "chain_start", "chain_end"


def touched_chains(
    late: DataFrame, scene: CorrectionInput, gap: timedelta, longest: timedelta = timedelta()
) -> tuple[DataFrame, list[date]]:
    """The chains that ``late`` events are in, from their first event to their last.

    Args:
        late: the columns of silver, and ``is_counted``; only events of visits.
        scene: provides the other events.
        gap: the longest time between two events of a chain.
        longest: chains are cut at its multiples since 1970; zero: none is.

    Returns:
        The events of these chains, also ``late`` ones that do not count: the columns of silver, ``is_counted``,
        ``is_late``, ``group``, ``chain_start``, ``chain_end``; and their dates.
    """
    dates, ahead = scene.near(late, gap), 0
    while True:
        chains = _chains(late, scene, dates, gap, longest).localCheckpoint()
        missed = _dates_missed(chains, dates, scene, gap)
        if not missed:
            return chains, dates
        # A chain may last for months: each round reads twice as far.
        around = {day + timedelta(days=days) for day in missed for days in range(-ahead, ahead + 1)}
        dates = sorted({*dates, *(day for day in around if scene.first_date <= day <= scene.last_date)})
        ahead = 2 * ahead + 1


def _chains(
    late: DataFrame, scene: CorrectionInput, dates: Sequence[date], gap: timedelta, longest: timedelta
) -> DataFrame:
    users = scene.few(late.select("user_id").distinct())
    own = scene.few(late.where("is_counted").select(*EVENT, F.lit(True).alias("is_late")).distinct())
    counted = (
        scene.events(dates)
        .where(is_of_visit())
        .join(users, on="user_id", how="left_semi")
        .join(own, on=list(EVENT), how="left")
        .withColumns({"is_counted": F.lit(True), "is_late": F.coalesce("is_late", F.lit(False))})
    )
    # A copy that no longer counts is still needed to find the rows that it contributed to.
    points = late.where("NOT is_counted").withColumn("is_late", F.lit(True)).select(*counted.columns)
    key = chain_key(longest)
    of_user = Over.partitionBy(*key).orderBy("event_time", "event_id", "event_type")
    silence_us = F.unix_micros("event_time") - F.unix_micros(F.lag("event_time").over(of_user))
    is_first = F.coalesce(silence_us > microseconds(gap), F.lit(True)).cast("int")
    numbered = counted.unionByName(points).withColumn("chain", F.sum(is_first).over(of_user))
    in_chain = Over.partitionBy(*key, "chain")
    found = numbered.withColumns(
        {
            CHAIN_START: F.min("event_time").over(in_chain),
            CHAIN_END: F.max("event_time").over(in_chain),
            "is_touched": F.max("is_late").over(in_chain),
        }
    )
    group = in_order("user_id", CHAIN_START)
    return found.where("is_touched").withColumn(GROUP, group).drop("chain", "is_touched")


def _dates_missed(chains: DataFrame, dates: Sequence[date], scene: CorrectionInput, gap: timedelta) -> list[date]:
    """Dates that were not read and may have events of ``chains``."""
    first, last = F.to_date(F.col(CHAIN_START) - interval(gap)), F.to_date(F.col(CHAIN_END) + interval(gap))
    near = dates_of(chains.select(F.explode(F.sequence(first, last)).alias("event_date")))
    return [day for day in near if day not in dates and scene.first_date <= day <= scene.last_date]


def bounds(chains: DataFrame) -> DataFrame:
    """A row per chain: ``group``, ``user_id``, ``chain_start``, ``chain_end``."""
    return chains.select(GROUP, "user_id", CHAIN_START, CHAIN_END).distinct()


def rows_within(
    rows: DataFrame, chains: DataFrame, time: Column, until: Callable[[Column], Column], scene: CorrectionInput
) -> DataFrame:
    """``rows`` of users, those at a ``time`` from the start of a chain to ``until`` its end, with its ``group``."""
    bounded = scene.few(bounds(chains)).withColumnRenamed("user_id", "chain_user")
    is_in = (F.col("user_id") == F.col("chain_user")) & time.between(F.col(CHAIN_START), until(F.col(CHAIN_END)))
    return rows.join(bounded, on=is_in, how="inner").drop("chain_user", CHAIN_START, CHAIN_END)
