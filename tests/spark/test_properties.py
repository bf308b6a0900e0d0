"""Whatever arrives, in whatever order: the pipeline's rows are the oracle's."""

from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from spark_jobs.config.choices import JoinType
from spark_jobs.config.settings import Settings
from spark_jobs.lake.open import open_lake
from spark_jobs.queries.registry import TABLES
from tests.support.equality import MEASURED
from tests.support.lakes import RunLake, read_table
from tests.support.lateness import PATIENT
from tests.support.oracle import assert_same_rows, expected_tables
from tests.support.scenarios import World, records_of, worlds
from tests.support.source_files import write_files

_SCENARIOS_PER_RUN = 60

# Each example is a run of Spark, so an example holds many scenarios; shrinking would cost a run a step.
run_rarely = settings(
    max_examples=2,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.large_base_example,
        HealthCheck.function_scoped_fixture,
    ],
)


@pytest.mark.timeout(900)
@run_rarely
@given(
    world=worlds(_SCENARIOS_PER_RUN),
    file_by_file=st.booleans(),
    join=st.sampled_from(JoinType),
    tolerance=st.sampled_from(["5min", "0s"]),
    longest=st.sampled_from(["10min", "0s"]),
)
def test_every_table_of_a_drained_run_equals_the_oracle(
    run_lake: RunLake,
    tmp_path_factory: pytest.TempPathFactory,
    world: World,
    file_by_file: bool,  # noqa: FBT001 hypothesis passes by name
    join: JoinType,
    tolerance: str,
    longest: str,
) -> None:
    chosen = Settings.model_validate(
        {
            "ingest": {"max_bytes_per_batch": 1 if file_by_file else 2**20},
            "attribute": {"join": join, "tolerance": tolerance},
            "sessionize": {"watermark": "3h", "longest": longest},
            **PATIENT,
        }
    )
    folder = tmp_path_factory.mktemp("world")
    source = write_files(folder / "source", records_of(world.scenarios))
    expected = expected_tables(source, chosen, datetime.now(UTC))
    lake = run_lake(source, settings=chosen, measure=file_by_file, lake=open_lake(str(folder / "lake")))
    for table in (table for table in TABLES if file_by_file or table not in MEASURED):
        assert_same_rows(read_table(lake, table), expected.rows(table), table)
