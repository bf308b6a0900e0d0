"""Whatever comes late, in whatever order, repaired in between or not: gold ends as if nothing had been late."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import LATE_EVENTS
from spark_jobs.lake.open import open_lake
from spark_jobs.ledger.model import RecordKind
from spark_jobs.ledger.update import balance
from spark_jobs.restatements.plans import GOLD_PLANS
from spark_jobs.restatements.repair import repair
from spark_jobs.spark.open_lake import OpenLake
from tests.support.lakes import GOLD, read_table
from tests.support.oracle import assert_same_rows, expected_tables
from tests.support.runs import ONE_BY_ONE, run_in
from tests.support.scenarios import World, records_of, worlds
from tests.support.source_files import write_files

_SCENARIOS_PER_RUN = 60
_IMPATIENT = Settings.model_validate(
    {
        "ingest": ONE_BY_ONE,
        "deduplicate": {"watermark": "1h"},
        "attribute": {"impression_watermark": "1h", "click_watermark": "1h"},
        "sessionize": {"watermark": "0s"},
        "campaign_stats": {"watermark": "0s"},
        "moving_average": {"watermark": "0s", "size": 3, "timeout": "10min"},
        "user_status": {"watermark": "0s", "idle_after": "10min"},
    }
)

_CUT_AND_EARLY = _IMPATIENT.model_copy(
    update={
        "sessionize": _IMPATIENT.sessionize.model_copy(update={"longest": timedelta(minutes=10)}),
        "attribute": _IMPATIENT.attribute.model_copy(update={"tolerance": timedelta(minutes=5)}),
    }
)

run_rarely = settings(
    max_examples=1,
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


@pytest.mark.slow
@pytest.mark.timeout(900)
@run_rarely
@given(world=worlds(_SCENARIOS_PER_RUN))
def test_late_events_correct_gold_whenever_it_is_repaired(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, world: World
) -> None:
    _run_and_repair(spark, tmp_path_factory.mktemp("world"), world, repairs=(False, True))


@pytest.mark.slow
@pytest.mark.timeout(3600)
@settings(run_rarely, max_examples=6)
@given(
    world=worlds(_SCENARIOS_PER_RUN),
    repairs=st.tuples(st.booleans(), st.booleans()),
    own=st.sampled_from([_CUT_AND_EARLY, _IMPATIENT]),
)
def test_late_events_correct_gold_in_many_worlds(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    world: World,
    repairs: tuple[bool, bool],
    own: Settings,
) -> None:
    _run_and_repair(spark, tmp_path_factory.mktemp("world"), world, repairs, own)


def _run_and_repair(
    spark: SparkSession, folder: Path, world: World, repairs: tuple[bool, bool], own: Settings = _IMPATIENT
) -> None:
    files = records_of(world.scenarios)
    lake, source, late = open_lake(str(folder / "lake")), folder / "source", 0
    whole = write_files(folder / "whole", files)
    source.mkdir()
    for file, is_repaired in zip(sorted(whole.iterdir()), (*repairs, True), strict=True):
        (source / file.name).hardlink_to(file)
        is_last = file.name == f"{len(files) - 1:04}.jsonl"
        run_in(spark, own, lake, source, drain=is_last, measure=True)
        GOLD_PLANS.remove_old(lake, datetime.now(UTC))
        if is_repaired and (plan := repair(OpenLake.of(lake, own, spark))):
            late += plan.late_events
    expected = expected_tables(whole, own, datetime.now(UTC))
    assert late == len(read_table(lake, LATE_EVENTS)) > 0, "nothing came late: the test shows nothing"
    for table in GOLD:
        assert_same_rows(read_table(lake, table), expected.rows(table), table)
    assert balance(own, lake, drained=True).rows(RecordKind.LATE_REPAIRED) >= late
