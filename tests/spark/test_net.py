"""Gold net of marks, by hand: which rows a mark is told in, and what remains of a window."""

from collections.abc import Iterable
from datetime import UTC, date, datetime
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import ATTRIBUTIONS, CAMPAIGN_STATS, Table
from spark_jobs.queries.attribute.correction import CORRECTION as OF_ATTRIBUTIONS
from spark_jobs.queries.campaign_stats.correction import CORRECTION as OF_CAMPAIGN_STATS
from spark_jobs.queries.correction import Correction, CorrectionInput
from spark_jobs.traffic_rules.valid_columns import rules_by_event
from tests.support.invalid import NOON_US, SECOND, Event, event, frame

pytestmark = pytest.mark.derived

_DAY = date(2026, 3, 1)
_SETTINGS = Settings.model_validate({"campaign_stats": {"window": "10min", "slide": "10min"}})
_Marks = Iterable[tuple[str, str, float, str]]
"""Type, id, seconds after noon, and rule."""


def _imp(event_id: str, seconds: float) -> Event:
    return event("imp", event_id, seconds, user_id="u", campaign_id="c", ad_id="a", cost_micros=100)


def _clk(event_id: str, seconds: float, impression_id: str) -> Event:
    return event("clk", event_id, seconds, user_id="u", impression_id=impression_id)


_EVENTS = [
    _imp("both", 0),
    _clk("k1", 10, "both"),
    _clk("k2", 900, "both"),
    _imp("seen", 20),
    _clk("k3", 30, "seen"),
    _clk("k4", 40, "seen"),
    _imp("alone", 50),
    _clk("orphan", 60, "never"),
]
_MARKS = [
    ("impression", "both", 0, "rate"),
    ("impression", "both", 0, "agent"),
    ("click", "k1", 10, "rate"),
    ("click", "k3", 30, "soon"),
    ("impression", "alone", 50, "agent"),
    ("click", "orphan", 60, "soon"),
    ("click", "k4", 41, "soon"),  # an event of that id at another time
    ("impression", "k4", 40, "soon"),  # or of another type
]


def _marked(spark: SparkSession, marks: _Marks) -> DataFrame:
    rows = [(kind, event_id, NOON_US + round(at * SECOND), rule) for kind, event_id, at, rule in marks]
    named = spark.createDataFrame(rows, "event_type STRING, event_id STRING, us BIGINT, rule_id STRING")
    return rules_by_event(named.withColumn("event_time", F.timestamp_micros("us")).drop("us"))


def _expected(
    spark: SparkSession, correction: Correction, table: Table, marks: _Marks, live: list[dict[str, Any]] | None = None
) -> list[dict[str, Any]]:
    """The rows as they should be, if all events are late and the table has the rows ``live``."""
    values = [tuple(row[name] for name in table.column_names) for row in live or ()]
    events, there = frame(spark, _EVENTS), spark.createDataFrame(values, table.ddl)
    marked = _marked(spark, marks)
    scene = CorrectionInput(
        _SETTINGS, None, lambda _: events, there, _DAY, _DAY, is_small=True, marked=lambda _: marked
    )
    late = events.withColumn("is_counted", F.lit(True))
    return [row.asDict() for row in correction.recompute(late, scene).expected.select(*table.column_names).collect()]


def test_a_mark_is_told_in_each_row_of_its_event(spark: SparkSession) -> None:
    rows = _expected(spark, OF_ATTRIBUTIONS, ATTRIBUTIONS, _MARKS)
    found = {
        (row["impression_id"], row["click_id"]): (row["status"], row["invalid"], row["invalid_impression"])
        for row in rows
    }
    assert found == {
        ("both", "k1"): ("clicked", ["agent", "rate"], True),
        ("both", "k2"): ("clicked", ["agent", "rate"], True),
        ("seen", "k3"): ("clicked", ["soon"], None),
        ("seen", "k4"): ("clicked", None, None),
        ("alone", None): ("unclicked", ["agent"], True),
        ("never", "orphan"): ("orphan_click", ["soon"], None),
    }
    assert len(rows) == len(found)


def test_net_is_what_remains_without_marked_events(spark: SparkSession) -> None:
    first, second = sorted(
        _expected(spark, OF_CAMPAIGN_STATS, CAMPAIGN_STATS, _MARKS), key=lambda row: row["window_start"]
    )
    names = ("impressions", "clicks", "cost_micros")
    assert [first[name] for name in names] == [3, 3, 300]
    assert [first[f"valid_{name}"] for name in names] == [1, 1, 100], "only seen and k4"
    assert [second[name] for name in names] == [0, 1, 0]
    assert [second[f"valid_{name}"] for name in names] == [0, 0, 0], "its impression is marked"


@pytest.mark.parametrize(("marks", "net"), [([], None), (_MARKS[:1], 1)], ids=["not marked", "marked"])
def test_a_row_of_before_has_no_net_until_an_event_of_it_is_marked(
    marks: _Marks, net: int | None, spark: SparkSession
) -> None:
    rows = _expected(spark, OF_CAMPAIGN_STATS, CAMPAIGN_STATS, [])
    old = [{**row, "valid_impressions": None, "valid_clicks": None, "valid_cost_micros": None} for row in rows]
    for row in old:
        row |= {name: row[name].astimezone(UTC) for name in ("window_start", "window_end")}
    found = _expected(spark, OF_CAMPAIGN_STATS, CAMPAIGN_STATS, marks, old)
    (first,) = (row for row in found if row["impressions"])
    assert first["valid_clicks"] == (None if net is None else first["clicks"] - net)
    assert first["valid_impressions"] == (None if net is None else first["impressions"] - net)
    assert {row["window_start"].astimezone(UTC) for row in found} == {
        datetime(2026, 3, 1, 12, minute, tzinfo=UTC) for minute in (0, 10)
    }
