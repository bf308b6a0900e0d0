"""The job ``measure``, compared with an independent computation."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import CAMPAIGN_STATS
from spark_jobs.lake.open import open_lake
from spark_jobs.queries.jobs import MEASURE_JOB
from spark_jobs.queries.places import checkpoint_key
from spark_jobs.queries.registry import QUERIES_OF_JOB
from spark_jobs.spark.open_lake import OpenLake
from spark_jobs.streams.reset import reset
from tests.support.equality import MEASURED, assert_lake_equals_oracle, generate_source
from tests.support.lakes import read_table
from tests.support.lateness import PATIENT
from tests.support.runs import ONE_BY_ONE, run_in
from tests.support.source_files import without_prices

# Each file is a batch here, and nothing in the next file may be late.
_Changes = dict[str, dict[str, Any]]
_PATIENT: _Changes = {"ingest": ONE_BY_ONE, **PATIENT}


def _patient(changes: _Changes) -> Settings:
    both = _PATIENT.keys() | changes.keys()
    return Settings.model_validate({name: _PATIENT.get(name, {}) | changes.get(name, {}) for name in both})


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({}, id="defaults"),
        pytest.param(
            {
                "campaign_stats": {"window": "30min", "slide": "7min", "output": "update"},
                "moving_average": {"size": 4, "output": "every", "timeout": "10min"},
                "user_status": {"idle_after": "7min"},
                "spark": {"state_store": "memory"},
            },
            id="overlapping windows, update mode, a mean for every value",
        ),
    ],
)
def test_a_drained_run_equals_an_independent_computation(
    changes: dict[str, dict[str, Any]], spark: SparkSession, tmp_path: Path
) -> None:
    settings = _patient(changes)
    source = without_prices(generate_source(tmp_path / "source", events=2000, seed=71, files=2))
    lake = open_lake(str(tmp_path / "lake"))
    run_in(spark, settings, lake, source, measure=True)
    assert_lake_equals_oracle(lake, source, settings)
    assert all(len(read_table(lake, table)) > 100 for table in MEASURED)
    costs = [row[5] for row in read_table(lake, CAMPAIGN_STATS)]
    assert min(costs.count(None), costs.count(0), len(costs) - costs.count(None) - costs.count(0)) > 10


@pytest.mark.slow
def test_lost_checkpoints_that_are_reset_change_no_row(spark: SparkSession, tmp_path: Path) -> None:
    settings = Settings.model_validate(_PATIENT)
    source, later = generate_source(tmp_path / "source", events=2000, seed=72, files=3), tmp_path / "later"
    later.mkdir()
    coming = [Path(shutil.move(file, later)) for file in sorted(source.iterdir())[2:]]
    lake = open_lake(str(tmp_path / "lake"))
    run_in(spark, settings, lake, source, drain=False, measure=True)
    assert all(read_table(lake, table) for table in MEASURED), "no row could be written twice"
    for query in QUERIES_OF_JOB[MEASURE_JOB]:
        lake.files.delete_folder(checkpoint_key(query, 1))
        assert reset(OpenLake.of(lake, settings, spark), query).open_events
    for file in coming:
        shutil.move(file, source)
    run_in(spark, settings, lake, source, measure=True)
    assert_lake_equals_oracle(lake, source, settings)
