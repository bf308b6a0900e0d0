"""A replay of a day reads the files that hold the day or its neighbors: all others can be gone."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pytest
from pyspark.sql import SparkSession

from spark_jobs.config.durations import Window
from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import (
    ATTRIBUTIONS,
    BRONZE_EVENTS,
    CAMPAIGN_STATS,
    MOVING_AVERAGES,
    SESSIONS,
    SILVER_EVENTS,
    USER_STATUS,
    Table,
)
from spark_jobs.generator.generate import generate
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from spark_jobs.restatements.repair import repair
from spark_jobs.restatements.replay import replay
from spark_jobs.spark.open_lake import OpenLake
from tests.support.lakes import live_files
from tests.support.runs import ONE_BY_ONE, run_in

pytestmark = pytest.mark.slow
_FILE_BY_FILE = Settings.model_validate({"ingest": ONE_BY_ONE})
_DAYS = 10
_BEGIN = datetime(2025, 1, 6, tzinfo=UTC)
_DAY = timedelta(days=1)
_TIMES = {
    BRONZE_EVENTS: "event_time",
    SILVER_EVENTS: "event_time",
    ATTRIBUTIONS: "coalesce(impression_time, click_time)",
    SESSIONS: "session_start",
    CAMPAIGN_STATS: "window_end",
    MOVING_AVERAGES: "window_end",
    USER_STATUS: "since",
}


def test_a_day_among_many_reads_its_share(spark: SparkSession, tmp_path: Path) -> None:
    source, lake = tmp_path / "source", open_lake(str(tmp_path / "lake"))
    generate(GeneratorSpec(events=500, seed=5, hours=24.0 * _DAYS, files=_DAYS, late=0.02, duplicates=0.1), source)
    run_in(spark, _FILE_BY_FILE, lake, source, measure=True)
    assert repair(OpenLake.of(lake, _FILE_BY_FILE, spark))
    window = Window(_BEGIN + 4 * _DAY, _BEGIN + 5 * _DAY)
    whole = replay(OpenLake.of(lake, _FILE_BY_FILE, spark), window).report
    assert whole.audited
    assert all(table.same for table in whole.tables.values())
    for table in _TIMES:
        removed, there = _remove_files(lake, table, window.begin - _DAY, window.end + _DAY)
        assert removed >= there / 2, f"{table.name}: {removed} of {there} files can go: the test shows nothing"
    assert replay(OpenLake.of(lake, _FILE_BY_FILE, spark), window).report.tables == whole.tables


def _remove_files(lake: Lake, table: Table, begin: datetime, end: datetime) -> tuple[int, int]:
    """Removes the files of ``table`` without a time from ``begin`` to ``end``; says how many, and of how many."""
    files = [lake.path / table.path / name for name in live_files(lake.path / table.path)]
    removed = 0
    with duckdb.connect() as connection:
        for file in files:
            time = f"epoch_us({_TIMES[table]})"
            query = f"SELECT min({time}), max({time}) FROM read_parquet($file, hive_partitioning = false)"
            ((first, last),) = connection.execute(query, {"file": str(file)}).fetchall()
            if first is None or last < _us(begin) or first >= _us(end):
                file.unlink()
                removed += 1
    return removed, len(files)


def _us(time: datetime) -> int:
    return int(time.timestamp() * 10**6)
