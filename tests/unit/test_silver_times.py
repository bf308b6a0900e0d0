"""The newest times in silver, from commits as Delta writes them."""

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import SILVER_EVENTS
from spark_jobs.lake.layout import Lake, commit_key
from spark_jobs.lake.open import open_lake
from spark_jobs.spark.open_lake import OpenLake
from spark_jobs.streams.silver_times import CommitTimes, SilverTimes, times_in

_NO_SPARK: SparkSession = None  # type: ignore[assignment] # nothing is asked of it


@pytest.fixture
def lake(tmp_path: Path) -> OpenLake:
    return OpenLake.of(open_lake(str(tmp_path / "lake")), Settings(), _NO_SPARK)


def _add(event_type: str, newest: str | None, **more: Any) -> str:
    stats = {"stats": json.dumps({"numRecords": 1, "maxValues": {"event_time": newest}})} if newest else {}
    partition = {"event_type": event_type, "event_date": str(date(2026, 3, 1))}
    return json.dumps({"add": {"path": "x", "partitionValues": partition, "dataChange": True, **stats, **more}})


def _commit(lake: Lake, version: int, *lines: str) -> None:
    lake.files.write(commit_key(SILVER_EVENTS, version), "\n".join(('{"commitInfo":{}}', *lines)).encode())


def _at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-03-01T{text}Z").astimezone(UTC)


def test_a_commit_tells_of_events_and_of_heartbeats() -> None:
    lines = [
        _add("click", "2026-03-01T12:00:00.123Z"),
        _add("impression", "2026-03-01T13:00:00.000+01:00"),
        _add("heartbeat", "2026-03-01T16:00:00.000Z"),
    ]
    times = times_in("\n".join(lines).encode())
    assert times == CommitTimes(event=_at("12:00:00.123"), heartbeat=_at("16:00:00"))
    assert times.newest == _at("16:00:00")


def test_rows_that_are_only_moved_do_not_count() -> None:
    assert times_in(_add("click", "2026-03-01T12:00:00.123Z", dataChange=False).encode()) == CommitTimes()


def test_a_file_without_statistics_is_unknown() -> None:
    assert not times_in(_add("click", None).encode()).is_known


def test_only_an_event_newer_than_all_events_moves_time(lake: OpenLake) -> None:
    times = SilverTimes(lake)
    assert not times.follow(), "there is no silver yet"
    timeline = [
        ("click", "12:00:00.500", True),
        ("click", "11:59:00.000", False),
        ("heartbeat", "12:10:00.000", False),
        ("impression", "12:00:00.501", True),
    ]
    for version, (event_type, time, has_moved) in enumerate(timeline):
        _commit(lake, version, _add(event_type, f"2026-03-01T{time}Z"))
        assert times.follow() is has_moved, (event_type, time)
        assert not times.follow()
    _commit(lake, len(timeline))
    assert not times.follow(), "no row was kept: repeats, or all quarantined"


def test_the_newest_time_is_never_earlier_than_the_truth(lake: OpenLake) -> None:
    times = SilverTimes(lake)
    times.follow()
    truth = _at("12:00:00.123999")
    _commit(lake, 0, _add("click", "2026-03-01T12:00:00.123Z"))
    times.follow()
    newest = times.newest()
    assert newest is not None
    assert truth <= newest < truth + timedelta(milliseconds=1)


def test_a_lake_without_silver_has_no_newest_time(lake: OpenLake) -> None:
    times = SilverTimes(lake)
    times.follow()
    assert times.newest() is None
