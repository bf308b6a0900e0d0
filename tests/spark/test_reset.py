"""A checkpoint reset in the middle of the stream changes no row, whatever happened to the old one."""

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.config.choices import StateStore
from spark_jobs.config.sections import (
    DeduplicateSettings,
    IngestSettings,
    SessionizeSettings,
    SparkSettings,
    TablesSettings,
)
from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import ATTRIBUTIONS, SESSIONS, SILVER_EVENTS
from spark_jobs.errors import CheckpointError
from spark_jobs.ingest.query import NAME as INGEST
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.lock import hold_job
from spark_jobs.lake.open import open_lake
from spark_jobs.operations.maintain import maintain
from spark_jobs.places import CHECKPOINTS, MAINTENANCE
from spark_jobs.queries.deduplicate.query import NAME as DEDUPLICATE
from spark_jobs.queries.jobs import ATTRIBUTE_JOB, DEDUPLICATE_JOB
from spark_jobs.queries.manifest import FILES
from spark_jobs.queries.notes import last_note
from spark_jobs.queries.places import checkpoint_in_use, checkpoint_key, checkpoint_versions
from spark_jobs.queries.registry import QUERIES_OF_JOB, TABLES
from spark_jobs.queries.sessionize.query import NAME as SESSIONIZE
from spark_jobs.spark.conf import streaming_conf
from spark_jobs.spark.open_lake import OpenLake
from spark_jobs.spark.write_delta import append_rows
from spark_jobs.streams import reset as reset_of_checkpoints
from spark_jobs.streams.checkpoints import claim
from spark_jobs.streams.heartbeats import append_heartbeat
from spark_jobs.streams.rebuild import rebuild
from spark_jobs.streams.reset import reset
from tests.expectations.good_rows import append, good_rows
from tests.support.equality import MEASURED, assert_lake_equals_oracle, generate_source
from tests.support.lakes import RunLake, read_table
from tests.support.runs import ONE_BY_ONE

pytestmark = pytest.mark.derived

_QUERIES = [query for job in (DEDUPLICATE_JOB, ATTRIBUTE_JOB) for query in QUERIES_OF_JOB[job]]
_NOTHING = timedelta()
_FILE_BY_FILE = IngestSettings.model_validate(ONE_BY_ONE)


@pytest.fixture
def half_way(run_lake: RunLake, tmp_path: Path) -> tuple[Lake, Path, list[Path]]:
    """A lake in the middle of a day, its source, and the files still to come."""
    source, later = generate_source(tmp_path / "source", events=3000, seed=41, files=4), tmp_path / "later"
    later.mkdir()
    coming = [Path(shutil.move(file, later)) for file in sorted(source.iterdir())[2:]]
    lake = run_lake(source, settings=Settings(ingest=_FILE_BY_FILE), drain=False)
    return lake, source, coming


def _reset_all(spark: SparkSession, settings: Settings, lake: Lake, source: Path) -> dict[str, int]:
    for key, value in streaming_conf(settings).items():
        spark.conf.set(key, value)
    done = [reset(OpenLake.of(lake, settings, spark), query, source if query == INGEST else None) for query in _QUERIES]
    assert {one.version for one in done} == {2}
    return {one.query: one.open_events for one in done}


@pytest.mark.slow
def test_lost_checkpoints_that_are_reset_with_other_settings_change_no_row(
    spark: SparkSession, run_lake: RunLake, half_way: tuple[Lake, Path, list[Path]]
) -> None:
    lake, source, coming = half_way
    changed = Settings(
        ingest=_FILE_BY_FILE,
        deduplicate=DeduplicateSettings(watermark="5h"),
        sessionize=SessionizeSettings(watermark="1h"),
        spark=SparkSettings(state_store=StateStore.MEMORY, shuffle_partitions=3),
    )
    with pytest.raises(CheckpointError, match=r"deduplicate\.watermark was 3h, is 5h.*adloom checkpoints reset"):
        run_lake(source, settings=changed, lake=lake)
    assert all(len(read_table(lake, table)) for table in (ATTRIBUTIONS, SESSIONS)), "no row could be written twice"
    shutil.rmtree(lake.path / CHECKPOINTS)
    # Left behind by a reset that was killed; no checkpoint, because it has no manifest.
    lake.files.write(f"{checkpoint_key(DEDUPLICATE, 2)}/offsets/0", b"half a fi")
    open_events = _reset_all(spark, changed, lake, source)
    assert all(open_events[query] for query in _QUERIES if query != INGEST), open_events
    _maintain_on_the_way(spark, lake, changed)
    for file in coming:
        shutil.move(file, source)
    run_lake(source, settings=changed, lake=lake)
    assert_lake_equals_oracle(lake, source, changed)


def _maintain_on_the_way(spark: SparkSession, lake: Lake, settings: Settings) -> None:
    """Compacts all tables and removes the small files at once; no row changes and no reader fails."""
    at_once = settings.model_copy(update={"tables": TablesSettings().model_copy(update={"file_retention": _NOTHING})})
    tables = [table for table in TABLES if table not in MEASURED]
    rows = {table.name: len(read_table(lake, table)) for table in tables}
    for one in maintain(OpenLake.of(lake, at_once, spark), tables, remove=True):
        assert one.files_joined > one.files_made > 0, one
        assert one.files_removed >= one.files_joined, "and empty ones"
    assert {table.name: len(read_table(lake, table)) for table in tables} == rows
    with hold_job(lake, MAINTENANCE, settings.s3, spark=spark):
        (passed_over,) = maintain(OpenLake.of(lake, at_once, spark), [SESSIONS], remove=True)
    assert "is being run by another process" in passed_over.skipped
    append_heartbeat(
        OpenLake.of(lake, Settings(), spark), datetime(2025, 1, 6, tzinfo=UTC), "unread", writer="test", number=1
    )
    (unread,) = maintain(OpenLake.of(lake, at_once, spark), [SILVER_EVENTS], remove=True)
    assert "query attribute has read it up to version" in unread.not_removed


def test_a_table_without_notes_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    lake = open_lake(str(tmp_path / "lake"))
    append(spark, lake, SESSIONS, good_rows(SESSIONS.name))
    with pytest.raises(CheckpointError, match="does not say how far query sessionize had come"):
        reset(OpenLake.of(lake, Settings(), spark), "sessionize")
    assert checkpoint_versions(lake, "sessionize") == []


def test_a_query_that_never_ran_starts_at_the_beginning(spark: SparkSession, tmp_path: Path) -> None:
    lake = open_lake(str(tmp_path / "lake"))
    assert reset(OpenLake.of(lake, Settings(), spark), "sessionize").open_events == 0
    assert checkpoint_in_use(lake, "sessionize") == 2


@pytest.mark.parametrize("when", ["during", pytest.param("after", marks=pytest.mark.slow)])
def test_a_batch_that_an_old_driver_writes_while_or_after_its_checkpoint_is_reset_is_found_out(
    when: str,
    spark: SparkSession,
    half_way: tuple[Lake, Path, list[Path]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It has lost its lock and does not know it. The new checkpoint would read what that batch has read once more."""
    settings = Settings(ingest=_FILE_BY_FILE)
    lake = OpenLake.of(half_way[0], settings, spark)
    before = last_note(lake, SESSIONIZE)
    assert before is not None
    late = before.model_copy(update={"batch": before.batch + 1})

    def write_late() -> None:
        append_rows(lake.read(SESSIONS).limit(1), lake, SESSIONS, late)

    def rebuild_slowly(*arguments: Any) -> int:
        open_events = rebuild(*arguments)
        write_late()
        return open_events

    if when == "during":
        monkeypatch.setattr(reset_of_checkpoints, "rebuild", rebuild_slowly)
    reset(lake, SESSIONIZE)
    if when == "after":
        claim(lake, settings, [SESSIONIZE], source=FILES)
        write_late()
    with pytest.raises(CheckpointError, match="another checkpoint wrote the last batch in the table"):
        claim(lake, settings, [SESSIONIZE], source=FILES)
