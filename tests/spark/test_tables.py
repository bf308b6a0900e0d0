"""Tables that an earlier adloom began go on."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import SILVER_EVENTS
from spark_jobs.lake.open import open_lake
from spark_jobs.spark.event_times import newest_event_time
from spark_jobs.spark.open_lake import OpenLake
from spark_jobs.spark.session import using
from spark_jobs.streams.heartbeats import append_heartbeat
from tests.support.lakes import live_files
from tests.support.lakes import read_table as read_with_duckdb
from tests.support.tables import read_table

_EARLY = datetime(2025, 1, 6, 12, 0, 0, 1, tzinfo=UTC)
_LATE = _EARLY + timedelta(microseconds=1)


def test_times_of_the_older_form_are_read_beside_those_in_microseconds(spark: SparkSession, tmp_path: Path) -> None:
    lake = open_lake(str(tmp_path / "lake"))
    with using(spark, {"spark.sql.parquet.outputTimestampType": "INT96"}):
        append_heartbeat(OpenLake.of(lake, Settings(), spark), _EARLY, "older", writer="test", number=0)
    append_heartbeat(OpenLake.of(lake, Settings(), spark), _LATE, "newer", writer="test", number=1)
    folder = tmp_path / "lake" / SILVER_EVENTS.path
    schemas = [pq.ParquetFile(folder / name).schema for name in live_files(folder)]
    forms = {schema.column(schema.names.index("event_time")).physical_type for schema in schemas}
    assert forms == {"INT96", "INT64"}, "the table holds both"
    events = read_table(spark, lake, SILVER_EVENTS)
    assert newest_event_time(events) == _LATE
    for time, name in ((_EARLY, "older"), (_LATE, "newer")):
        (found,) = events.where(F.col("event_time") == F.lit(time)).select("event_id").collect()
        assert found.event_id == name
    at = SILVER_EVENTS.column_names.index("event_time")
    found_times = {row[at] for row in read_with_duckdb(lake, SILVER_EVENTS, heartbeats=True)}
    assert found_times == {_EARLY.replace(tzinfo=None), _LATE.replace(tzinfo=None)}
