"""A driver that dies at any moment changes no row."""

from pathlib import Path

import pytest
from pyspark.sql import DataFrame

from spark_jobs.config.sections import IngestSettings
from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import Table
from spark_jobs.errors import QueryFailedError
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.notes import CommitNote
from spark_jobs.lake.open import open_lake
from spark_jobs.queries import output
from spark_jobs.spark import write_delta
from tests.support.equality import assert_lake_equals_oracle, generate_source
from tests.support.lakes import RunLake
from tests.support.source_files import shuffle_times


def test_a_failure_between_the_commit_of_a_table_and_the_commit_of_its_query_changes_no_row(
    run_lake: RunLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = generate_source(tmp_path / "source", events=1000, seed=5, files=4)
    # So that rows are held back when it fails.
    shuffle_times(source, seed=5)
    settings, lake = Settings(ingest=IngestSettings(max_bytes_per_batch=1)), open_lake(str(tmp_path / "lake"))
    append_rows = write_delta.append_rows
    for doomed in (("bronze", 1), ("silver", 2), ("attributions", 3), ("sessions", 4)):

        def append_and_fail(
            rows: DataFrame, lake: Lake, table: Table, note: CommitNote, *, doomed: tuple[str, int] = doomed
        ) -> None:
            append_rows(rows, lake, table, note)
            if table.name == doomed[0] and note.batch >= doomed[1]:  # on a slow machine it may have come further
                raise RuntimeError(f"struck after {doomed}")

        monkeypatch.setattr(output, "append_rows", append_and_fail)
        with pytest.raises(QueryFailedError, match="failed"):
            run_lake(source, settings=settings, lake=lake)
    monkeypatch.setattr(output, "append_rows", append_rows)
    run_lake(source, settings=settings, lake=lake)
    assert_lake_equals_oracle(lake, source)
