"""Amounts above the limit, which silver of an older lake may hold, stop nothing and count as 0 everywhere."""

from collections import Counter
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from spark_jobs.config.sections import AttributeSettings, CampaignStatsSettings, CreditSettings
from spark_jobs.contract.events import AMOUNT_LIMITS
from spark_jobs.contract.tables import SILVER_EVENTS
from spark_jobs.credit.orders import judged
from spark_jobs.queries.attribute.operator import attribute
from spark_jobs.queries.campaign_stats.operator import campaign_stats

_TIME = datetime(2026, 3, 1, 12, tzinfo=UTC)
_LARGEST = 2**63 - 1
_COST, _VALUE = AMOUNT_LIMITS["cost_micros"], AMOUNT_LIMITS["value_micros"]


def _silver(spark: SparkSession, events: list[dict[str, Any]]) -> DataFrame:
    common = {"event_time": _TIME, "event_date": _TIME.date(), "user_id": "u", "is_last": False}
    rows = [common | event for event in events]
    return spark.createDataFrame(
        [tuple(row.get(name) for name in SILVER_EVENTS.column_names) for row in rows], SILVER_EVENTS.ddl
    )


def _shown(spark: SparkSession, *costs: int) -> DataFrame:
    shown = {"event_type": "impression", "campaign_id": "c", "ad_id": "a"}
    return _silver(spark, [shown | {"event_id": f"i{n}", "cost_micros": cost} for n, cost in enumerate(costs)])


def test_the_largest_numbers_of_64_bits_add_up_to_nothing(spark: SparkSession) -> None:
    events = _shown(spark, _LARGEST, _LARGEST, _COST, _COST + 1)
    own = AttributeSettings()
    (window,) = campaign_stats(events, events, events, CampaignStatsSettings(), own).collect()
    assert (window.impressions, window.cost_micros, window.valid_cost_micros) == (4, _COST, _COST)
    costs = Counter(row.cost_micros for row in attribute(events, events, own).collect())
    assert costs == {None: 3, _COST: 1}


def test_a_conversion_of_such_a_value_is_worth_nothing(spark: SparkSession) -> None:
    bought = {"event_type": "conversion", "conversion_type": "purchase", "currency": "EUR"}
    values = {"p0": _LARGEST, "p1": _VALUE + 1, "p2": _VALUE}
    events = _silver(spark, [bought | {"event_id": name, "value_micros": value} for name, value in values.items()])
    found = {row.conversion_id: row.value_micros for row in judged(events, CreditSettings()).collect()}
    assert found == {"p0": 0, "p1": 0, "p2": _VALUE}
