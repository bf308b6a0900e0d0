"""The weather station example on its own data; stations end by wall-clock silence."""

import shutil
from datetime import timedelta
from pathlib import Path

import duckdb
import pytest
from pyspark.sql import SparkSession

from examples.weather_station import DATA, STATIONS, start_averages
from tests.support.servers import wait_until

_ORACLE = """
WITH readings AS (
  UNPIVOT (SELECT station_id AS key, epoch_us("timestamp"::TIMESTAMP) AS us, pressure, temp FROM read_json($file))
  ON pressure, temp INTO NAME measure VALUE value
)
SELECT key, measure, min(us) OVER w, us, count(*) OVER w, avg(value) OVER w
FROM readings
WINDOW w AS (PARTITION BY key, measure ORDER BY us, value ROWS 9 PRECEDING)
QUALIFY count(*) OVER w = 10
"""


@pytest.fixture
def readings(tmp_path: Path) -> Path:
    folder = tmp_path / "readings"
    folder.mkdir()
    shutil.copy(DATA, folder)
    return folder


def _rows(spark: SparkSession, out: Path, where: str) -> list[tuple[object, ...]]:
    averages = spark.read.format("delta").load(str(out / "averages")).where(where)
    us = [f"unix_micros({name})" for name in ("window_start", "window_end")]
    return [tuple(row) for row in averages.selectExpr("key", "measure", *us, "value_count", "mean").collect()]


def _count_last(spark: SparkSession, out: Path) -> int:
    return len(_rows(spark, out, "is_last")) if (out / "averages" / "_delta_log").exists() else 0


def test_each_mean_is_that_of_the_last_ten_readings_and_silence_ends_a_station(
    spark: SparkSession, readings: Path, tmp_path: Path
) -> None:
    quick = STATIONS.model_copy(update={"timeout": timedelta(seconds=3)})
    query = start_averages(spark, readings, tmp_path / "out", quick)
    try:
        # processAllAvailable would not return: Spark keeps looking for silent stations.
        wait_until(lambda: _count_last(spark, tmp_path / "out") == 6, 90, "the stations were not forgotten")
    finally:
        query.stop()
    found = sorted(_rows(spark, tmp_path / "out", "NOT is_last"))
    with duckdb.connect() as connection:
        due = sorted(connection.execute(_ORACLE, {"file": str(DATA)}).fetchall())
    assert [row[:5] for row in found] == [row[:5] for row in due]
    assert [row[5] for row in found] == pytest.approx([row[5] for row in due], rel=1e-12)
    last = {row[:2]: row[2:] for row in _rows(spark, tmp_path / "out", "is_last")}
    assert last == {row[:2]: row[2:] for row in found}, "the newest of each once more"
    operators = query.lastProgress.stateOperators if query.lastProgress else []
    assert [operator.numRowsTotal for operator in operators] == [0], "nothing is kept of them"
