"""Whole runs against the oracle, and what a run promises beside its rows."""

import gzip
import json
import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.config.choices import DeduplicateMode, JoinState, JoinType, StateStore
from spark_jobs.config.sections import AttributeSettings, DeduplicateSettings, IngestSettings, S3Settings, SparkSettings
from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import ATTRIBUTIONS, BRONZE_EVENTS, SESSIONS, SILVER_EVENTS
from spark_jobs.errors import LakeInUseError, LedgerError, SourceError
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.lock import hold_job
from spark_jobs.lake.open import open_lake
from spark_jobs.ledger.model import RecordKind
from spark_jobs.ledger.update import balance
from spark_jobs.spark.open_lake import OpenLake
from spark_jobs.streams.bounded_run import run
from tests.support.equality import assert_lake_equals_oracle, generate_source
from tests.support.lakes import RunLake, read_ledger, read_table, rows_by_name
from tests.support.runs import ONE_BY_ONE, run_in

FILE_BY_FILE = IngestSettings.model_validate(ONE_BY_ONE)


@pytest.fixture(scope="module")
def mixed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Lake, Path]:
    """A drained lake and its source: plain and gzip files, blank lines, an event of 2099, a file of notes."""
    folder = tmp_path_factory.mktemp("mixed")
    source = generate_source(folder / "source", events=3000, seed=2)
    first, second, *_ = sorted(source.iterdir())
    poison = json.dumps(_impression("poison", "12:00:00") | {"event_time": "2099-01-01T00:00:00Z"}).encode()
    _rewrite(first, first, poison + b"\n\n  \t\r\n" + first.read_bytes())
    _rewrite(second, source / f"{second.name}.gz", gzip.compress(second.read_bytes()))
    (source / "notes.txt").write_text("not events")
    lake = open_lake(str(folder / "lake"))
    run_in(spark, Settings(ingest=FILE_BY_FILE), lake, source)
    return lake, source


def test_a_drained_run_equals_the_oracle(mixed: tuple[Lake, Path]) -> None:
    assert_lake_equals_oracle(*mixed)


def test_one_event_of_2099_changes_nothing_but_the_quarantine(mixed: tuple[Lake, Path]) -> None:
    (row,) = [row for row in read_table(mixed[0], BRONZE_EVENTS) if '"poison"' in row[0]]
    assert row[3] == "event_time_in_future"
    assert read_ledger(mixed[0]).late == 0


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(Settings(attribute=AttributeSettings(join=JoinType.INNER)), id="inner", marks=pytest.mark.slow),
        pytest.param(
            Settings(attribute=AttributeSettings(join=JoinType.LEFT_OUTER)), id="left outer", marks=pytest.mark.slow
        ),
        pytest.param(
            Settings(
                attribute=AttributeSettings(join=JoinType.RIGHT_OUTER),
                deduplicate=DeduplicateSettings(mode=DeduplicateMode.FOREVER),
                spark=SparkSettings(state_store=StateStore.MEMORY),
            ),
            id="right outer, dedup for ever, state in memory",
        ),
        *[
            pytest.param(
                Settings(attribute=AttributeSettings(join=join), spark=SparkSettings(join_state=JoinState.BY_KEY)),
                id=f"{join.value}, join state by key",
                marks=marks,
            )
            for join, marks in ((JoinType.FULL_OUTER, pytest.mark.slow), (JoinType.INNER, pytest.mark.slow))
        ],
    ],
)
def test_each_join_type_dedup_mode_and_state_store_equals_the_oracle(
    settings: Settings, run_lake: RunLake, tmp_path: Path
) -> None:
    source = generate_source(tmp_path / "source", events=1500, seed=3)
    assert_lake_equals_oracle(run_lake(source, settings=settings), source, settings)


@pytest.mark.parametrize("begun_in", [JoinState.BY_KEY, pytest.param(JoinState.BY_TIME, marks=pytest.mark.slow)])
def test_a_second_run_takes_only_new_files_and_goes_on_with_what_is_open_in_the_form_it_has(
    begun_in: JoinState, run_lake: RunLake, tmp_path: Path
) -> None:
    first, then = (Settings(spark=SparkSettings(join_state=form)) for form in JoinState)
    if begun_in is not first.spark.join_state:
        first, then = then, first
    source, later = generate_source(tmp_path / "source", events=3000, seed=7), tmp_path / "later"
    later.mkdir()
    held_back = sorted(source.iterdir())[2:]
    times = {file.name: file.stat().st_mtime for file in held_back}
    for file in held_back:
        file.rename(later / file.name)
    lake = run_lake(source, settings=first, drain=False)
    assert read_ledger(lake).rows(RecordKind.PENDING, account="attribute") > 0
    for name, modified in times.items():
        (later / name).rename(source / name)
        os.utime(source / name, (modified, modified))
    run_lake(source, settings=then, drain=True, lake=lake)
    assert_lake_equals_oracle(lake, source)


@pytest.mark.slow
def test_a_second_drain_adds_nothing_and_what_comes_after_it_from_before_it_is_late(
    run_lake: RunLake, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    _write(source / "a.jsonl", [_impression("i1", "12:00:00"), _impression("i2", "12:30:00")])
    lake = run_lake(source)
    before = sorted(map(repr, read_table(lake, SILVER_EVENTS, heartbeats=True)))
    run_lake(source, lake=lake)
    assert sorted(map(repr, read_table(lake, SILVER_EVENTS, heartbeats=True))) == before
    other = tmp_path / "another folder"
    other.mkdir()
    _write(other / "b.jsonl", [_impression("i3", "12:10:00"), _impression("i4", "23:00:00")])
    run_lake(other, lake=lake)
    ledger = read_ledger(lake)
    late = [ledger.rows(RecordKind.LATE, account=name) for name in ("attribute", "sessionize")]
    assert (ledger.kept, late) == (4, [1, 1])
    assert {row[1] for row in read_table(lake, ATTRIBUTIONS)} == {"i1", "i2", "i4"}


def test_a_damaged_file_has_a_verdict_and_ends_no_run(run_lake: RunLake, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    lines = [json.dumps({"event_id": os.urandom(20).hex()}) for _ in range(1000)]
    (source / "torn.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode())[:-20_000])
    found = rows_by_name(run_lake(source), BRONZE_EVENTS)
    whole = [row["raw"] for row in found if row["verdict"] == "missing_event_type"]
    (torn,) = [row for row in found if row["verdict"] == "invalid_encoding"]
    assert sorted(whole) == sorted(lines[: len(whole)])
    assert len(whole) > 100
    assert torn["source"] == f"file://{source}/torn.jsonl.gz#bytes={sum(len(line) + 1 for line in whole)}-"


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
    lake = open_lake(str(tmp_path / "lake"))
    with hold_job(lake, "attribute", S3Settings(), spark=spark), pytest.raises(LakeInUseError, match="another process"):
        run(OpenLake.of(lake, Settings(), spark), source)


def test_a_row_lost_or_too_many_fails_the_accounts(spark: SparkSession, run_lake: RunLake, tmp_path: Path) -> None:
    lake = run_lake(generate_source(tmp_path / "source", events=300, seed=10, files=1))
    for number, (table, change) in enumerate(
        (
            (SILVER_EVENTS, "DELETE FROM {0} WHERE event_type = 'click'"),
            (SESSIONS, "DELETE FROM {0} WHERE ended_by = 'timeout'"),
            (SILVER_EVENTS, "INSERT INTO {0} SELECT * FROM {0} WHERE event_type = 'activity' LIMIT 1"),
        )
    ):
        other = open_lake(str(shutil.copytree(lake.path, tmp_path / f"lake-{number}")))
        spark.sql(change.format(f"delta.`{other.table(table)}`"))
        with pytest.raises(LedgerError, match="do not balance"):
            balance(Settings(), other, drained=True)
    assert balance(Settings(), lake, drained=True).balances


def _rewrite(file: Path, place: Path, content: bytes) -> None:
    """``content`` for ``file``, at ``place``, with the time of ``file``."""
    modified = file.stat().st_mtime
    file.unlink()
    place.write_bytes(content)
    os.utime(place, (modified, modified))


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
