"""After a reset the same rows are late as without it, and the files that small commits left need not be there."""

import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark_jobs.config.settings import Settings
from spark_jobs.contract.events import ACTIVITY, CLICK, HEARTBEAT, IMPRESSION, OK
from spark_jobs.contract.tables import BRONZE_EVENTS, Table
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.notes import CommitNote
from spark_jobs.lake.open import open_lake
from spark_jobs.operations.maintain import maintain
from spark_jobs.queries.attribute.query import NAME as ATTRIBUTE
from spark_jobs.queries.campaign_stats.query import NAME as CAMPAIGN_STATS
from spark_jobs.queries.deduplicate.query import NAME as DEDUPLICATE
from spark_jobs.queries.manifest import FILES
from spark_jobs.queries.moving_average.query import NAME as MOVING_AVERAGE
from spark_jobs.queries.notes import last_note
from spark_jobs.queries.registry import find_query
from spark_jobs.queries.sessionize.query import NAME as SESSIONIZE
from spark_jobs.queries.user_status.query import NAME as USER_STATUS
from spark_jobs.spark.conf import streaming_conf
from spark_jobs.spark.open_lake import OpenLake
from spark_jobs.spark.write_delta import append_rows
from spark_jobs.streams.checkpoints import claim
from spark_jobs.streams.reset import reset
from spark_jobs.streams.start import start
from tests.expectations.good_rows import RECEIVED, at
from tests.support.lakes import read_table
from tests.support.oracle import assert_same_rows, comparable

pytestmark = pytest.mark.slow

_Row = dict[str, Any]
_SHORT = {"watermark": "10min"}
_SETTINGS = Settings.model_validate(
    {
        "deduplicate": _SHORT,
        "attribute": {"window": "10min", "impression_watermark": "10min", "click_watermark": "10min"},
        "sessionize": {**_SHORT, "gap": "5min"},
        "campaign_stats": {**_SHORT, "feed": "0s"},
        "moving_average": {**_SHORT, "size": 2},
        "user_status": _SHORT,
    }
)


def _event(kind: str, event_id: str, minutes: float, user: str, **fields: Any) -> _Row:
    time = at(minutes)
    of_kind = {"campaign_id": "spring", "ad_id": "a", "cost_micros": 100} if kind == IMPRESSION else {}
    return {
        "event_type": kind,
        "event_id": event_id,
        "event_time": time,
        "user_id": user,
        "is_last": False,
        "event_date": time.date(),
        **of_kind,
        **fields,
    }


# The watermark is 12:49 in the last batch before the reset, and 12:50 in the next one.
_BEFORE = (
    [
        _event(IMPRESSION, "i1", 0, "u1"),
        _event(IMPRESSION, "i2", 1, "u1"),
        _event(CLICK, "k1", 2, "u1", impression_id="i1"),
        _event(ACTIVITY, "a1", 40, "u2"),
    ],
    [_event(IMPRESSION, "i3", 58, "u3"), _event(CLICK, "k3", 59, "u3", impression_id="i3")],
    [_event(ACTIVITY, "a2", 60, "u1")],
)
_AFTER = (
    [
        _event(IMPRESSION, "late-i", 20, "u1"),
        _event(CLICK, "late-k", 10, "u1", impression_id="i2"),
        _event(ACTIVITY, "late-a", 24, "u4"),
        _event(IMPRESSION, "i3", 58, "u3"),  # a repeat, which only deduplicate reads
        _event(CLICK, "k2", 61, "u1", impression_id="i3"),
        _event(IMPRESSION, "i4", 55, "u1"),
        _event(ACTIVITY, "a3", 70, "u2"),
    ],
    [_event(HEARTBEAT, "beat-1", 300, "")],
    [_event(HEARTBEAT, "beat-2", 300, "")],
)


def _append(spark: SparkSession, lake: Lake, table: Table, rows: list[_Row], number: int) -> None:
    """A commit of ``table``, with an ``ingest_time`` of its own."""
    ingested = RECEIVED + timedelta(minutes=number)
    kept = [row for row in rows if table == BRONZE_EVENTS or row["event_id"] != "i3" or number < len(_BEFORE)]
    whole = [{**row, "verdict": OK, "ingest_time": ingested} for row in kept]
    frame = spark.createDataFrame([tuple(map(row.get, table.column_names)) for row in whole], table.ddl)
    append_rows(frame.coalesce(1), lake, table, CommitNote(writer=f"test-{number}", batch=0))


def _start(spark: SparkSession, lake: Lake, query: str) -> StreamingQuery:
    for key, value in streaming_conf(_SETTINGS).items():
        spark.conf.set(key, value)
    claim(lake, _SETTINGS, [query], source=FILES)
    return start(find_query(query), OpenLake.of(lake, _SETTINGS, spark))


def _finish(spark: SparkSession, lake: Lake, query: str) -> None:
    running = _start(spark, lake, query)
    for number, rows in enumerate(_AFTER, start=len(_BEFORE)):
        _append(spark, lake, find_query(query).reads[0], rows, number)
        running.processAllAvailable()
    running.stop()


def _compact(spark: SparkSession, lake: Lake, table: Table) -> None:
    """Leaves ``table`` as nightly maintenance has made it after a week: the small files are gone."""
    at_once = _SETTINGS.tables.model_copy(update={"file_retention": timedelta()})
    (care,) = maintain(
        OpenLake.of(lake, _SETTINGS.model_copy(update={"tables": at_once}), spark), [table], remove=False
    )
    assert care.files_joined > 1, care
    before = _count_data_files(lake, table)
    # The other queries have not read it, so `maintain` would keep the files.
    spark.sql(f"VACUUM delta.`{lake.table(table)}`")
    assert _count_data_files(lake, table) < before


def _count_data_files(lake: Lake, table: Table) -> int:
    """Without the log: VACUUM writes commits of its own."""
    return sum("/_delta_log/" not in file.key for file in lake.files.walk(table.path))


_QUERIES = (DEDUPLICATE, ATTRIBUTE, SESSIONIZE, CAMPAIGN_STATS, MOVING_AVERAGE, USER_STATUS)


@pytest.mark.parametrize("query", _QUERIES)
def test_what_is_late_before_a_reset_is_late_after_it(query: str, spark: SparkSession, tmp_path: Path) -> None:
    twin, reads = open_lake(str(tmp_path / "twin")), find_query(query).reads[0]
    first, *others = _BEFORE
    _append(spark, twin, reads, first, 0)
    running = _start(spark, twin, query)
    running.processAllAvailable()
    for number, rows in enumerate(others, start=1):
        _append(spark, twin, reads, rows, number)
        running.processAllAvailable()
    running.stop()
    note = last_note(twin, query)
    assert note is not None
    assert note.watermark_ms >= at(49).timestamp() * 1000
    lake = open_lake(str(shutil.copytree(twin.path, tmp_path / "lake")))
    _finish(spark, twin, query)
    _compact(spark, lake, reads)
    assert reset(OpenLake.of(lake, _SETTINGS, spark), query).open_events
    _finish(spark, lake, query)
    table = find_query(query).writes
    expected = comparable(read_table(twin, table), table)
    assert expected
    assert_same_rows(read_table(lake, table), expected, table)
