"""Files that are read in any order: nothing is late because of it."""

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import BRONZE_EVENTS, Table
from spark_jobs.errors import QueryFailedError
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.notes import CommitNote, frontier_of
from spark_jobs.lake.open import open_lake
from spark_jobs.queries import output
from spark_jobs.queries.deduplicate.query import NAME as DEDUPLICATE
from spark_jobs.queries.notes import last_note
from spark_jobs.spark import write_delta
from spark_jobs.spark.open_lake import OpenLake
from spark_jobs.streams.reset import reset
from tests.support.equality import assert_lake_equals_oracle, generate_source
from tests.support.runs import ONE_BY_ONE, run_in
from tests.support.source_files import shuffle_times


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_the_rows_are_those_of_a_computation_in_which_nothing_is_late(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    source = generate_source(tmp_path / "source", events=2000, seed=seed, files=5)
    shuffle_times(source, seed)
    lake = open_lake(str(tmp_path / "lake"))
    result = run_in(spark, Settings.model_validate({"ingest": {"max_bytes_per_batch": 1}}), lake, source)
    assert_lake_equals_oracle(lake, source)
    assert result.ledger.late == 0


@pytest.mark.slow
def test_by_modification_time_events_of_a_file_that_is_read_late_are_late(spark: SparkSession, tmp_path: Path) -> None:
    source = generate_source(tmp_path / "source", events=2000, seed=1, files=5)
    shuffle_times(source, 1)
    settings = Settings.model_validate({"ingest": ONE_BY_ONE})
    assert run_in(spark, settings, open_lake(str(tmp_path / "lake")), source).ledger.late > 0


@pytest.mark.slow
def test_a_reset_while_rows_are_held_back_loses_none(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = generate_source(tmp_path / "source", events=2000, seed=3, files=5)
    shuffle_times(source, seed=3)
    settings, lake = Settings.model_validate({"ingest": {"max_bytes_per_batch": 1}}), open_lake(str(tmp_path / "lake"))
    append_rows = write_delta.append_rows

    def append_and_fail(rows: DataFrame, lake: Lake, table: Table, note: CommitNote) -> None:
        append_rows(rows, lake, table, note)
        if table == BRONZE_EVENTS and note.batch == 3:
            raise RuntimeError("struck")

    monkeypatch.setattr(output, "append_rows", append_and_fail)
    with pytest.raises(QueryFailedError, match="struck"):
        run_in(spark, settings, lake, source)
    monkeypatch.setattr(output, "append_rows", append_rows)
    note = last_note(lake, DEDUPLICATE)
    assert note
    assert frontier_of(note.reached[0]) is not None, "rows must be held back"
    reset(OpenLake.of(lake, settings, spark), DEDUPLICATE)
    result = run_in(spark, settings, lake, source)
    assert_lake_equals_oracle(lake, source)
    assert result.ledger.late == 0
