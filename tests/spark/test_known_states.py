"""The state of a state function after a reset: no event is both part of it and read again."""

from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_jobs.config.sections import MovingAverageSettings
from spark_jobs.contract.events import HEARTBEAT, IMPRESSION
from spark_jobs.contract.tables import SILVER_EVENTS
from spark_jobs.queries.open_events import not_settled
from spark_jobs.queries.state_functions.known_states import last_values

_WATERMARK = datetime(2026, 3, 1, 12, tzinfo=UTC)
_NEAR_US = (-1000, -1, 0, 1, 999, 1000)


def _silver(spark: SparkSession, times: list[datetime], kind: str = IMPRESSION) -> DataFrame:
    rows = [
        {
            "event_type": kind,
            "event_id": f"{kind}-{number}",
            "event_time": time,
            "user_id": "u1",
            "campaign_id": "c1",
            "cost_micros": number,
        }
        for number, time in enumerate(times)
    ]
    return spark.createDataFrame([tuple(map(row.get, SILVER_EVENTS.column_names)) for row in rows], SILVER_EVENTS.ddl)


def test_each_event_is_either_known_or_read_again(spark: SparkSession) -> None:
    times = [_WATERMARK + timedelta(microseconds=us) for us in _NEAR_US]
    silver = _silver(spark, times).cache()
    (known,) = last_values(silver, _WATERMARK, MovingAverageSettings()).collect()
    again = not_settled(silver, _WATERMARK).collect()
    assert known["values"] == [0.0, 1.0, 2.0], "those that Spark would drop as late"
    assert sorted(row["cost_micros"] for row in again) == [3, 4, 5]


def test_the_newest_heartbeat_is_read_again_however_old(spark: SparkSession) -> None:
    beats = _silver(spark, [_WATERMARK - timedelta(hours=2), _WATERMARK - timedelta(hours=1)], HEARTBEAT)
    (row,) = not_settled(beats.unionByName(_silver(spark, [_WATERMARK - timedelta(hours=3)])), _WATERMARK).collect()
    assert row["event_id"] == "heartbeat-1"


@pytest.mark.parametrize(("after_us", "values"), [(-1, [0.0]), (0, [])])
def test_a_value_is_forgotten_just_at_the_timeout(after_us: int, values: list[float], spark: SparkSession) -> None:
    settings = MovingAverageSettings()
    silver = _silver(spark, [_WATERMARK - settings.timeout - timedelta(microseconds=after_us)])
    assert [row["values"] for row in last_values(silver, _WATERMARK, settings).collect()] == (
        [values] if values else []
    )


@pytest.mark.parametrize(("after_us", "values"), [(0, [0.0, 1.0]), (1, [1.0])])
def test_a_value_just_at_the_timeout_follows(after_us: int, values: list[float], spark: SparkSession) -> None:
    settings = MovingAverageSettings()
    silver = _silver(spark, [_WATERMARK, _WATERMARK + settings.timeout + timedelta(microseconds=after_us)])
    (known,) = last_values(silver, _WATERMARK + settings.timeout + timedelta(seconds=1), settings).collect()
    assert known["values"] == values
