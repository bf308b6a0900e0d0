"""The reader of Delta tables, on tables written by hand."""

import json
from datetime import date, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import duckdb
import pytest

from spark_jobs.contract.tables import ATTRIBUTIONS, BRONZE_EVENTS, SESSIONS, SILVER_EVENTS, Table
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from tests.support.lakes import live_files, read_table

_EVENT = (
    "SELECT {id} AS event_id, TIMESTAMPTZ '2024-05-01 12:00:00.000001+00' AS event_time, 'u1' AS user_id, "
    "false AS is_last, NULL::VARCHAR AS campaign_id, NULL::VARCHAR AS ad_id, NULL::BIGINT AS cost_micros, "
    "NULL::VARCHAR AS impression_id, 'd' AS data, TIMESTAMP '2024-05-01 12:00:05' AS ingest_time"
)
_ROW = ("activity", "a1", datetime(2024, 5, 1, 12, 0, 0, 1), "u1", False, *[None] * 4, "d", *[None] * 7)  # noqa: DTZ001
"""The file is older than the columns of conversions and devices."""
_PROTOCOL = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return open_lake(str(tmp_path / "lake"))


def _parquet(lake: Lake, table: Table, path: str, query: str) -> None:
    file = lake.path / table.path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({query}) TO '{file}' (FORMAT parquet)")


def _commit(lake: Lake, table: Table, version: int, *actions: dict[str, Any]) -> None:
    log = lake.path / table.path / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    (log / f"{version:020}.json").write_text("\n".join(json.dumps(action) for action in actions))


def _add(path: str, **more: Any) -> dict[str, Any]:
    return {
        "add": {"path": quote(path), "partitionValues": {"event_type": "activity", "event_date": "2024-05-01"}, **more}
    }


def _event_file(lake: Lake, path: str, event_id: str) -> dict[str, Any]:
    _parquet(lake, SILVER_EVENTS, path, _EVENT.format(id=f"'{event_id}'"))
    return _add(path)


def _ids(lake: Lake) -> list[str]:
    return sorted(row[1] for row in read_table(lake, SILVER_EVENTS))


def test_a_table_that_was_never_begun_has_no_rows(lake: Lake) -> None:
    assert read_table(lake, ATTRIBUTIONS) == []


def test_rows_come_in_contract_order_with_partition_values_from_the_log(lake: Lake) -> None:
    _commit(lake, SILVER_EVENTS, 0, _PROTOCOL, _event_file(lake, "event_type=activity/x y%.parquet", "a1"))
    assert read_table(lake, SILVER_EVENTS) == [(*_ROW, datetime(2024, 5, 1, 12, 0, 5), date(2024, 5, 1))]  # noqa: DTZ001


def test_removed_and_never_committed_files_are_not_read(lake: Lake) -> None:
    first, second = _event_file(lake, "1.parquet", "a1"), _event_file(lake, "2.parquet", "a2")
    _event_file(lake, "orphan.parquet", "a3")
    _commit(lake, SILVER_EVENTS, 0, _PROTOCOL, first)
    _commit(lake, SILVER_EVENTS, 1, second, {"remove": {"path": "1.parquet"}})
    assert _ids(lake) == ["a2"]


def test_heartbeats_are_left_out_unless_asked_for(lake: Lake) -> None:
    _parquet(lake, SILVER_EVENTS, "h.parquet", _EVENT.format(id="'h1'"))
    heartbeat = {
        "add": {"path": "h.parquet", "partitionValues": {"event_type": "heartbeat", "event_date": "2024-05-01"}}
    }
    _commit(lake, SILVER_EVENTS, 0, _PROTOCOL, heartbeat, _event_file(lake, "1.parquet", "a1"))
    assert _ids(lake) == ["a1"]
    assert sorted(row[0] for row in read_table(lake, SILVER_EVENTS, heartbeats=True)) == ["activity", "heartbeat"]


def test_a_record_that_claims_to_be_a_heartbeat_is_shown_in_bronze(lake: Lake) -> None:
    query = "SELECT '{}' AS raw, 'f' AS source, 'invalid_event_type' AS verdict, 'heartbeat' AS event_type, * FROM "
    _parquet(lake, BRONZE_EVENTS, "b.parquet", f"{query} ({_EVENT.format(id='NULL::VARCHAR')})")
    _commit(lake, BRONZE_EVENTS, 0, _PROTOCOL, {"add": {"path": "b.parquet", "partitionValues": {}}})
    assert [row[3:5] for row in read_table(lake, BRONZE_EVENTS)] == [("invalid_event_type", "heartbeat")]


def test_events_of_sessions_are_lists_of_tuples(lake: Lake) -> None:
    struct = "{'event_time': TIMESTAMPTZ '2024-05-01 12:00:00+00', 'event_type': 'click', 'event_id': 'k1'}"
    times = "TIMESTAMP '2024-05-01 12:00:00' AS session_start, TIMESTAMP '2024-05-01 12:00:00' AS session_end"
    counts = "1 AS event_count, 0 AS impression_count, 1 AS click_count, 0 AS activity_count"
    query = f"SELECT 's' AS session_id, 'u' AS user_id, {times}, 'timeout' AS ended_by, {counts}, [{struct}] AS events"
    _parquet(lake, SESSIONS, "s.parquet", query)
    _commit(lake, SESSIONS, 0, {"add": {"path": "s.parquet", "partitionValues": {"event_date": "2024-05-01"}}})
    noon = datetime(2024, 5, 1, 12)  # noqa: DTZ001
    assert read_table(lake, SESSIONS) == [
        ("s", "u", noon, noon, "timeout", 1, 0, 1, 0, [(noon, "click", "k1")], date(2024, 5, 1))
    ]


def test_a_cleaned_log_is_read_from_its_checkpoint(lake: Lake) -> None:
    _event_file(lake, "1.parquet", "a1")
    partition = "MAP {'event_type': 'activity', 'event_date': '2024-05-01'}"
    added = (
        f"SELECT {{'path': '1.parquet', 'partitionValues': {partition}}} AS add, NULL::STRUCT(path VARCHAR) AS remove"
    )
    _parquet(lake, SILVER_EVENTS, f"_delta_log/{7:020}.checkpoint.parquet", added)
    _commit(lake, SILVER_EVENTS, 8, _event_file(lake, "2.parquet", "a2"))
    assert _ids(lake) == ["a1", "a2"]


def test_a_gap_in_the_log_is_refused(lake: Lake) -> None:
    _commit(lake, SILVER_EVENTS, 0, _PROTOCOL)
    _commit(lake, SILVER_EVENTS, 2, _event_file(lake, "2.parquet", "a2"))
    with pytest.raises(AssertionError, match="version 1 is missing"):
        _ids(lake)


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        ({"protocol": {"minReaderVersion": 3, "readerFeatures": ["v2Checkpoint"]}}, "v2Checkpoint"),
        ({"protocol": {"minReaderVersion": 4}}, "minReaderVersion"),
        ({"metaData": {"configuration": {"delta.columnMapping.mode": "name"}}}, "column mapping 'name'"),
        (_add("1.parquet", deletionVector={"storageType": "u"}), "deletion vector"),
        (_add("s3://bucket/1.parquet"), "only local files"),
    ],
)
def test_what_the_reader_does_not_know_it_refuses(lake: Lake, action: dict[str, Any], reason: str) -> None:
    if reason == "only local files":
        action["add"]["path"] = "s3://bucket/1.parquet"
    _commit(lake, SILVER_EVENTS, 0, action)
    with pytest.raises(AssertionError, match=reason):
        read_table(lake, SILVER_EVENTS)


def test_a_log_that_begins_nowhere_is_refused(lake: Lake) -> None:
    _commit(lake, SILVER_EVENTS, 3, _PROTOCOL)
    with pytest.raises(AssertionError, match="neither version 0 nor a single-file checkpoint"):
        live_files(lake.path / SILVER_EVENTS.path)
