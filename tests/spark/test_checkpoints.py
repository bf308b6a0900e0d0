"""A checkpoint is used with the settings it was made with, or not at all."""

from pathlib import Path

import pytest

from spark_jobs.config.sections import AttributeSettings, SparkSettings
from spark_jobs.config.settings import Settings
from spark_jobs.errors import CheckpointError
from spark_jobs.lake.open import open_lake
from spark_jobs.queries.places import manifest_key
from spark_jobs.queries.registry import TABLES
from spark_jobs.streams.checkpoints import list_checkpoints
from tests.support.equality import assert_lake_equals_oracle, generate_source
from tests.support.lakes import RunLake, read_table


def test_a_start_that_would_misuse_a_checkpoint_is_refused_and_changes_nothing(
    run_lake: RunLake, tmp_path: Path
) -> None:
    source = generate_source(tmp_path / "source", events=300, seed=15, files=2)
    lake = open_lake(str(tmp_path / "lake"))
    run_lake(source, lake=lake, drain=False)
    rows = {table.name: len(read_table(lake, table)) for table in TABLES}
    longer = Settings(attribute=AttributeSettings(window="90min"))
    with pytest.raises(CheckpointError, match=r"attribute\.window was 1h, is 1h30min.*Restore the old settings"):
        run_lake(source, settings=longer, lake=lake)
    assert {table.name: len(read_table(lake, table)) for table in TABLES} == rows
    begun = {found.query: found for found in list_checkpoints(lake)}
    assert list(begun) == ["ingest", "deduplicate", "attribute", "sessionize"]
    assert all(found.manifest and found.last_batch >= 0 and found.bytes for found in begun.values())
    ignored = Settings(spark=SparkSettings(shuffle_partitions=3))
    run_lake(source, settings=ignored, lake=lake)
    assert_lake_equals_oracle(lake, source)
    lake.files.delete([manifest_key("sessionize", 1)])
    with pytest.raises(CheckpointError, match="sessionize: manifest was missing or damaged"):
        run_lake(source, lake=lake)
