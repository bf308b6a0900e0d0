"""Whole runs against the oracle, and what a run promises beside its rows."""

import gzip
import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.contracts.errors import LakeInUseError, LedgerError, QueryFailedError, SourceError
from spark_jobs.contracts.lake import Lake
from spark_jobs.contracts.settings import (
    AttributeSettings,
    DeduplicateMode,
    DeduplicateSettings,
    IngestSettings,
    JoinType,
    Settings,
    SparkSettings,
    StateStore,
)
from spark_jobs.contracts.tables import ATTRIBUTIONS, BRONZE_EVENTS, SESSIONS, SILVER_EVENTS
from spark_jobs.jobs.accounts import balance
from spark_jobs.jobs.run import run
from spark_jobs.runtime.lock import hold_lake
from tests.support.equality import assert_lake_equals_oracle, generate_source
from tests.support.lakes import RunLake, read_ledger, read_table

FILE_BY_FILE = IngestSettings(max_bytes_per_batch=1)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_drained_run_equals_the_oracle(seed: int, run_lake: RunLake, tmp_path: Path) -> None:
    source = generate_source(tmp_path / "source", events=4000, seed=seed)
    assert_lake_equals_oracle(run_lake(source, settings=Settings(ingest=FILE_BY_FILE)), source)


@pytest.mark.parametrize("join", [JoinType.INNER, JoinType.LEFT_OUTER, JoinType.RIGHT_OUTER])
def test_each_join_type_equals_the_oracle(join: JoinType, run_lake: RunLake, tmp_path: Path) -> None:
    source = generate_source(tmp_path / "source", events=1500, seed=3)
    settings = Settings(attribute=AttributeSettings(join=join))
    assert_lake_equals_oracle(run_lake(source, settings=settings), source, settings)


def test_the_in_memory_state_store_and_dedup_for_ever_give_the_same_rows(run_lake: RunLake, tmp_path: Path) -> None:
    source = generate_source(tmp_path / "source", events=1500, seed=6)
    settings = Settings(
        spark=SparkSettings(state_store=StateStore.MEMORY),
        deduplicate=DeduplicateSettings(mode=DeduplicateMode.FOREVER),
    )
    assert_lake_equals_oracle(run_lake(source, settings=settings), source, settings)


def test_a_second_run_takes_only_new_files_and_goes_on_with_what_is_open(run_lake: RunLake, tmp_path: Path) -> None:
    source, later = generate_source(tmp_path / "source", events=3000, seed=7), tmp_path / "later"
    later.mkdir()
    held_back = sorted(source.iterdir())[2:]
    times = {file.name: file.stat().st_mtime for file in held_back}
    for file in held_back:
        file.rename(later / file.name)
    lake = run_lake(source, drain=False)
    assert read_ledger(lake).attribution_open > 0
    for name, modified in times.items():
        (later / name).rename(source / name)
        os.utime(source / name, (modified, modified))
    run_lake(source, drain=True, lake=lake)
    assert_lake_equals_oracle(lake, source)


def test_nothing_is_left_open_after_a_drain_and_a_second_drain_adds_nothing(run_lake: RunLake, tmp_path: Path) -> None:
    source = generate_source(tmp_path / "source", events=500, seed=8, files=1)
    lake = run_lake(source)
    before = sorted(map(repr, read_table(lake, SILVER_EVENTS, heartbeats=True)))
    run_lake(source, lake=lake)
    assert sorted(map(repr, read_table(lake, SILVER_EVENTS, heartbeats=True))) == before


def test_events_before_a_drain_that_come_after_it_are_late_and_counted(run_lake: RunLake, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    _write(source / "a.jsonl", [_impression("i1", "12:00:00"), _impression("i2", "12:30:00")])
    lake = run_lake(source)
    _write(source / "b.jsonl", [_impression("i3", "12:10:00"), _impression("i4", "23:00:00")])
    run_lake(source, lake=lake)
    ledger = read_ledger(lake)
    assert (ledger.kept, ledger.attribution_late, ledger.session_late) == (4, 1, 1)
    assert {row[1] for row in read_table(lake, ATTRIBUTIONS)} == {"i1", "i2", "i4"}


def test_gzip_and_plain_files_are_read_alike(run_lake: RunLake, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    _write(source / "a.jsonl", [_impression("i1", "12:00:00")])
    (source / "b.jsonl.gz").write_bytes(gzip.compress(json.dumps(_impression("i2", "12:00:01")).encode() + b"\n\n"))
    (source / "notes.txt").write_text("not events")
    assert sorted(row[1] for row in read_table(run_lake(source), ATTRIBUTIONS)) == ["i1", "i2"]


def test_a_damaged_file_fails_the_run_with_its_name(run_lake: RunLake, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "torn.jsonl.gz").write_bytes(gzip.compress(b"{}\n" * 100_000)[:-20])
    with pytest.raises(QueryFailedError, match=r"torn\.jsonl\.gz"):
        run_lake(source)


@pytest.mark.parametrize("empty", [True, False], ids=["an empty folder", "no folder"])
def test_a_source_without_files_is_refused(empty: bool, run_lake: RunLake, tmp_path: Path) -> None:  # noqa: FBT001
    if empty:
        (tmp_path / "source").mkdir()
    with pytest.raises(SourceError, match="source"):
        run_lake(tmp_path / "source")


def test_a_file_of_blank_lines_leaves_empty_tables(run_lake: RunLake, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "blank.jsonl").write_text("\n  \n\t\r\n")
    lake = run_lake(source)
    assert read_ledger(lake).received == 0
    assert read_table(lake, SESSIONS) == []


def test_the_lake_refuses_a_second_writer(spark: SparkSession, tmp_path: Path) -> None:
    source = generate_source(tmp_path / "source", events=50, seed=9, files=1)
    lake = Lake.at(str(tmp_path / "lake"))
    with hold_lake(spark, lake), pytest.raises(LakeInUseError, match="another run"):
        run(spark, Settings(), lake, source)


def test_a_row_lost_from_a_table_fails_the_accounts(spark: SparkSession, run_lake: RunLake, tmp_path: Path) -> None:
    source = generate_source(tmp_path / "source", events=300, seed=10, files=1)
    lake = run_lake(source)
    for table, lost in ((SILVER_EVENTS, "event_type = 'click'"), (SESSIONS, "ended_by = 'timeout'")):
        place = f"delta.`{lake.table(table)}`"
        version = max(row.version for row in spark.sql(f"DESCRIBE HISTORY {place}").collect())
        spark.sql(f"DELETE FROM {place} WHERE {lost}")
        with pytest.raises(LedgerError, match="do not balance"):
            balance(spark, Settings(), lake, drained=True)
        spark.sql(f"RESTORE TABLE {place} TO VERSION AS OF {version}")
    assert balance(spark, Settings(), lake, drained=True).unaccounted == 0


def test_a_row_too_many_fails_the_accounts(spark: SparkSession, run_lake: RunLake, tmp_path: Path) -> None:
    lake = run_lake(generate_source(tmp_path / "source", events=300, seed=10, files=1))
    silver = spark.read.format("delta").load(lake.table(SILVER_EVENTS))
    silver.where("event_type = 'activity'").limit(1).write.format("delta").mode("append").save(
        lake.table(SILVER_EVENTS)
    )
    with pytest.raises(LedgerError, match="do not balance"):
        balance(spark, Settings(), lake, drained=True)


def test_one_event_of_2099_changes_nothing_but_the_quarantine(run_lake: RunLake, tmp_path: Path) -> None:
    source = generate_source(tmp_path / "source", events=1000, seed=12)
    poison = _impression("poison", "12:00:00") | {"event_time": "2099-01-01T00:00:00Z"}
    first = min(source.iterdir())
    modified = first.stat().st_mtime
    first.write_bytes(json.dumps(poison).encode() + b"\n" + first.read_bytes())
    os.utime(first, (modified, modified))
    lake = run_lake(source, settings=Settings(ingest=FILE_BY_FILE))
    assert_lake_equals_oracle(lake, source)
    (row,) = [row for row in read_table(lake, BRONZE_EVENTS) if '"poison"' in row[0]]
    assert row[3] == "event_time_in_future"


def _impression(event_id: str, clock: str) -> dict[str, str]:
    time = f"2025-01-06T{clock}Z"
    return {
        "event_type": "impression",
        "event_id": event_id,
        "event_time": time,
        "user_id": "u",
        "campaign_id": "c",
        "ad_id": "a",
    }


def _write(file: Path, events: list[dict[str, str]]) -> None:
    file.write_text("".join(json.dumps(event) + "\n" for event in events))
    newest = max((other.stat().st_mtime for other in file.parent.iterdir()), default=0)
    later = max(newest, (datetime.now(UTC) - timedelta(days=1)).timestamp()) + 1
    os.utime(file, (later, later))
