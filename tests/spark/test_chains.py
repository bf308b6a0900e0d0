"""Chains of many days."""

from collections.abc import Sequence
from datetime import date, timedelta

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.config.settings import Settings
from spark_jobs.queries.chains import touched_chains
from spark_jobs.queries.correction import CorrectionInput
from tests.support.invalid import event, frame

_FIRST, _DAYS = date(2026, 3, 1), 60
_HOUR = timedelta(hours=1)
_DAY_S = 86_400.0


pytestmark = pytest.mark.slow


def test_a_user_who_is_never_silent_costs_few_rounds(spark: SparkSession) -> None:
    """An event each hour for sixty days, another user's event later, and a late event within the first month."""
    hourly = [event("imp", f"i{hour}", hour * 3600.0, user_id="always") for hour in range(24 * _DAYS - 12)]
    others = [event("imp", "other", 70 * _DAY_S, user_id="other")]
    silver = frame(spark, [*hourly, *others]).withColumn("event_date", F.to_date("event_time")).cache()
    late = frame(spark, [event("imp", "late", 29 * _DAY_S + 60, user_id="always")])
    late = late.withColumns({"event_date": F.to_date("event_time"), "is_counted": F.lit(True)})
    rounds: list[Sequence[date]] = []

    def events(dates: Sequence[date]) -> DataFrame:
        rounds.append(dates)
        return silver.unionByName(late.drop("is_counted")).where(F.col("event_date").isin(list(dates)))

    scene = CorrectionInput(Settings(), None, events, silver, _FIRST, _FIRST + timedelta(days=80), is_small=True)
    chains, dates = touched_chains(late, scene, _HOUR)
    assert chains.count() == len(hourly) + 1
    assert chains.select("chain_start").distinct().count() == 1
    assert {_FIRST + timedelta(days=day) for day in range(_DAYS)} <= set(dates)
    assert len(rounds) <= 8, [len(dates) for dates in rounds]
