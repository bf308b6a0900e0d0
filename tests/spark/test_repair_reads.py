"""A repair reads and writes what late events touch: it succeeds on a lake that has nothing else left."""

import json
import os
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import BRONZE_EVENTS, SILVER_EVENTS, Table
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from spark_jobs.restatements.late_events import is_expired
from spark_jobs.restatements.repair import repair
from spark_jobs.spark.open_lake import OpenLake
from tests.support.lakes import GOLD, read_table
from tests.support.oracle import assert_same_rows, expected_tables
from tests.support.runs import ONE_BY_ONE, run_in

_FIRST = date(2026, 3, 1)
_DAYS = 6
_LATE_DAY = 3
_SETTINGS = Settings.model_validate({"ingest": ONE_BY_ONE})


def _events(day: int, *, suffix: str = "", minute: int = 0) -> list[dict[str, object]]:
    """An impression and its click of three users at noon of a day."""
    noon = datetime.combine(_FIRST + timedelta(days=day), datetime.min.time(), UTC) + timedelta(hours=12)
    events: list[dict[str, object]] = []
    for user in range(3):
        name, time = f"{day}-{user}{suffix}", noon + timedelta(minutes=minute, seconds=user)
        common = {"user_id": f"u{user}", "event_time": time.isoformat()}
        shown = {"campaign_id": "c1", "ad_id": "a1", "cost_micros": 1000 + user}
        events.append({"event_type": "impression", "event_id": f"i{name}", **common, **shown})
        clicked = {**common, "event_time": (time + timedelta(seconds=30)).isoformat(), "impression_id": f"i{name}"}
        events.append({"event_type": "click", "event_id": f"k{name}", **clicked})
    return events


def _write(source: Path, number: int, events: list[dict[str, object]]) -> None:
    source.mkdir(exist_ok=True)
    file = source / f"{number:02}.jsonl"
    file.write_text("".join(json.dumps(event) + "\n" for event in events))
    os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))


@pytest.mark.slow
def test_a_repair_succeeds_where_only_the_days_beside_the_late_ones_are_left(
    spark: SparkSession, tmp_path: Path
) -> None:
    source, lake = tmp_path / "source", open_lake(str(tmp_path / "lake"))
    for day in range(_DAYS):
        _write(source, day, _events(day))
    run_in(spark, _SETTINGS, lake, source, measure=True)
    assert repair(OpenLake.of(lake, _SETTINGS, spark))
    _write(source, _DAYS, _events(_LATE_DAY, suffix="-late", minute=2))
    run_in(spark, _SETTINGS, lake, source, measure=True)
    aside = _take_away(lake, {_FIRST + timedelta(days=_LATE_DAY + step) for step in (-1, 0, 1)})
    assert len(aside) >= 2 * len(GOLD), "little was taken away: the test shows little"
    plan = repair(OpenLake.of(lake, _SETTINGS, spark))
    for file, place in aside.items():
        place.rename(file)
    assert plan
    assert plan.late_events == len(_events(0))
    assert all(part.inserts for part in plan.tables.values())
    expected = expected_tables(source, _SETTINGS, datetime.now(UTC))
    for table in GOLD:
        assert_same_rows(read_table(lake, table), expected.rows(table), table)


def _take_away(lake: Lake, near: set[date]) -> dict[Path, Path]:
    """Moves the data files away that hold no row of the days ``near``; gives where each was, and where it is."""
    aside = {}
    for table in (BRONZE_EVENTS, SILVER_EVENTS, *GOLD):
        folder = lake.path / table.path
        for commit in sorted((folder / "_delta_log").glob("*.json")):
            for line in commit.read_text().splitlines():
                add = json.loads(line).get("add")
                if add and not _days_of(table, add) & near:
                    file = folder / add["path"]
                    place = file.with_name(f"aside-{file.name}")
                    file.rename(place)
                    aside[file] = place
    return aside


def _days_of(table: Table, add: dict[str, object]) -> set[date]:
    values = add["partitionValues"]
    assert isinstance(values, dict)
    if day := values.get("event_date"):
        return {date.fromisoformat(day)}
    stats = json.loads(str(add["stats"]))
    names = {"event_time", "window_start", "window_end", "since"} & stats["minValues"].keys() & {*table.stats_columns}
    first = min(datetime.fromisoformat(stats["minValues"][name]) for name in names).date()
    last = max(datetime.fromisoformat(stats["maxValues"][name]) for name in names).date()
    return {first + timedelta(days=step) for step in range((last - first).days + 1)}


def test_an_event_exactly_the_horizon_behind_the_watermark_is_not_expired(spark: SparkSession) -> None:
    horizon = timedelta(hours=2)
    rows = spark.sql(
        "SELECT id, timestamp_micros(id) AS event_time, timestamp_micros(7200000001) AS watermark FROM range(3)"
    )
    assert [row.id for row in rows.where(is_expired(horizon)).collect()] == [0]
