"""What repairs reads the days of late events, and what resets those of open ones: nothing else need be left."""

import json
import os
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import BRONZE_EVENTS, SESSIONS, SILVER_EVENTS, Table
from spark_jobs.ingest.query import NAME as INGEST
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from spark_jobs.queries.registry import QUERIES
from spark_jobs.queries.sessionize.query import NAME as SESSIONIZE
from spark_jobs.queries.user_status.query import NAME as USER_STATUS
from spark_jobs.restatements.late_events import is_expired
from spark_jobs.restatements.repair import repair
from spark_jobs.spark.open_lake import OpenLake
from spark_jobs.streams.reset import reset
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


_BOUNDED = tuple(query.name for query in QUERIES if query.name not in {INGEST, USER_STATUS})
"""Queries whose state is about the last days; a user may have been there for months."""


@pytest.mark.slow
def test_a_reset_succeeds_where_only_the_days_of_open_events_are_left(spark: SparkSession, tmp_path: Path) -> None:
    """Before, it read all that the lake has, however old."""
    source, lake = tmp_path / "source", open_lake(str(tmp_path / "lake"))
    for day in range(_DAYS):
        _write(source, day, _events(day))
    run_in(spark, _SETTINGS, lake, source, measure=True, drain=False)
    # The last batch had the watermark of the one before it, and so of the day before the last one.
    aside = _take_away(lake, {_FIRST + timedelta(days=day) for day in range(_DAYS - 3, _DAYS)})
    assert len(aside) >= 2 * len(GOLD), "little was taken away: the test shows little"
    opened = OpenLake.of(lake, _SETTINGS, spark)
    open_events = {name: reset(opened, name).open_events for name in _BOUNDED}
    assert all(open_events.values()), open_events
    for file, place in aside.items():
        place.rename(file)
    _write(source, _DAYS, _events(_DAYS - 1, suffix="-more", minute=10))
    run_in(spark, _SETTINGS, lake, source, measure=True)
    expected = expected_tables(source, _SETTINGS, datetime.now(UTC))
    for table in GOLD:
        assert_same_rows(read_table(lake, table), expected.rows(table), table)


@pytest.mark.slow
def test_a_session_that_has_been_open_for_days_is_found_whole(spark: SparkSession, tmp_path: Path) -> None:
    source, lake = tmp_path / "source", open_lake(str(tmp_path / "lake"))
    settings = Settings.model_validate({"ingest": ONE_BY_ONE, "sessionize": {"gap": "30min"}})
    step = timedelta(minutes=20)
    for day in range(_DAYS):
        begin = datetime.combine(_FIRST + timedelta(days=day), datetime.min.time(), UTC)
        times = [begin + step * number for number in range(timedelta(days=1) // step)]
        common: dict[str, object] = {"event_type": "activity", "user_id": "u9"}
        seen = [{**common, "event_id": f"a{time:%d%H%M}", "event_time": time.isoformat()} for time in times]
        _write(source, day, [*seen, *(_events(0) if day == 0 else [])])  # a table without sessions would say nothing
    run_in(spark, settings, lake, source, drain=False)
    assert reset(OpenLake.of(lake, settings, spark), SESSIONIZE).open_events == _DAYS * (timedelta(days=1) // step)
    run_in(spark, settings, lake, source)
    expected = expected_tables(source, settings, datetime.now(UTC))
    assert_same_rows(read_table(lake, SESSIONS), expected.rows(SESSIONS), SESSIONS)


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
