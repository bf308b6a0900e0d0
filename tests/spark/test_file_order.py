"""Files that are read in any order: nothing is late because of it."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.config.settings import Settings
from spark_jobs.lake.open import open_lake
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


def test_by_modification_time_events_of_a_file_that_is_read_late_are_late(spark: SparkSession, tmp_path: Path) -> None:
    source = generate_source(tmp_path / "source", events=2000, seed=1, files=5)
    shuffle_times(source, 1)
    settings = Settings.model_validate({"ingest": ONE_BY_ONE})
    assert run_in(spark, settings, open_lake(str(tmp_path / "lake")), source).ledger.late > 0
