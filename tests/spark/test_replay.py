"""A replay finds exactly the rows that are not as bronze says, says why, and puts them in place if it is told to."""

import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_jobs.contracts.errors import SettingsError
from spark_jobs.contracts.replay import Replay, Window, replay_key
from spark_jobs.contracts.settings import Settings
from spark_jobs.contracts.tables import (
    ATTRIBUTIONS,
    CAMPAIGN_STATS,
    MOVING_AVERAGES,
    RESTATEMENTS,
    SESSIONS,
    USER_STATUS,
    Table,
)
from spark_jobs.generator.generate import generate
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.jobs.repair import repair
from spark_jobs.jobs.replay import Replayed, replay
from spark_jobs.lake.layout import Lake
from spark_jobs.runtime.lakes import open_lake
from tests.support.lakes import read_table
from tests.support.oracle import Expected, assert_same_rows, expected_tables
from tests.support.runs import run_in

_GOLD = (ATTRIBUTIONS, SESSIONS, CAMPAIGN_STATS, MOVING_AVERAGES, USER_STATUS)
_FILE_BY_FILE = Settings.model_validate({"ingest": {"max_bytes_per_batch": 1}})
_DAY = datetime(2025, 1, 6, tzinfo=UTC)
_WHOLE = Window(_DAY - timedelta(days=1), _DAY + timedelta(days=2))


@dataclass
class _Day:
    """A drained day with late events, and what is due of it; ``late``: as it was before it was repaired."""

    late: Lake
    repaired: Lake
    expected: Expected


@pytest.fixture(scope="module")
def day(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> _Day:
    folder = tmp_path_factory.mktemp("day")
    source, lake = folder / "source", open_lake(str(folder / "late"))
    generate(GeneratorSpec(events=1500, seed=59, files=5, late=0.05, duplicates=0.05, malformed=0.01), source)
    run_in(spark, _FILE_BY_FILE, lake, source, measure=True)
    expected = expected_tables(source, _FILE_BY_FILE, datetime.now(UTC))
    repaired = _copy(lake, folder / "repaired")
    assert repair(spark, _FILE_BY_FILE, repaired)
    return _Day(lake, repaired, expected)


def _copy(lake: Lake, place: Path) -> Lake:
    return open_lake(str(shutil.copytree(lake.path, place)))


def _assert_as_due(lake: Lake, expected: Expected) -> None:
    for table in _GOLD:
        assert_same_rows(read_table(lake, table), expected.rows(table), table)


def _told(lake: Lake) -> Counter[tuple[str, str, str]]:
    names = RESTATEMENTS.column_names
    table, outcome, cause = (names.index(name) for name in ("table_name", "outcome", "cause"))
    return Counter((row[table], row[outcome], row[cause]) for row in read_table(lake, RESTATEMENTS))


def _differing(found: Replayed, kind: str) -> dict[str, int]:
    return {name: getattr(table, kind) for name, table in found.report.tables.items() if getattr(table, kind)}


def test_a_repaired_lake_is_as_bronze_says(spark: SparkSession, day: _Day) -> None:
    found = replay(spark, _FILE_BY_FILE, day.repaired, _WHOLE, is_applied=True)
    assert found.plan is None
    assert found.report.audited
    assert {name: table.same for name, table in found.report.tables.items()} == {
        table.name: len(day.expected.rows(table)) for table in _GOLD
    }
    assert Replay.model_validate_json(day.repaired.files.read(replay_key(_WHOLE)) or b"") == found.report
