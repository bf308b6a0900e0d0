"""State depends on the traffic within the watermarks, not on the length of the stream: `make test-long`."""

import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.config.sections import IngestSettings
from spark_jobs.config.settings import Settings
from spark_jobs.generator.generate import generate
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.lake.open import open_lake
from spark_jobs.queries.attribute.query import NAME as ATTRIBUTE
from spark_jobs.queries.deduplicate.query import NAME as DEDUPLICATE
from spark_jobs.queries.sessionize.query import NAME as SESSIONIZE
from tests.support.runs import ONE_BY_ONE, run_in

pytestmark = pytest.mark.slow

_EVENTS_A_DAY, _FILES_A_DAY = 4800, 6
_STATEFUL = (DEDUPLICATE, ATTRIBUTE, SESSIONIZE)


@pytest.mark.timeout(1800)
def test_ten_days_need_no_more_state_than_one(spark: SparkSession, tmp_path: Path) -> None:
    one, ten = (_peak_state_rows(spark, tmp_path / f"{days}", days) for days in (1, 10))
    sys.stdout.write(f"peak state rows: one day {one}, ten days {ten}\n")
    # The highest of sixty batches lies above the highest of six; state that grew with the stream would be tenfold.
    for query in _STATEFUL:
        assert 0 < ten[query] <= 1.5 * one[query], query


def _peak_state_rows(spark: SparkSession, folder: Path, days: int) -> dict[str, int]:
    spec = GeneratorSpec(
        events=_EVENTS_A_DAY * days, seed=1, hours=24 * days, files=_FILES_A_DAY * days, late=0, malformed=0
    )
    generate(spec, folder / "source")
    settings = Settings(ingest=IngestSettings.model_validate(ONE_BY_ONE))
    progress = run_in(spark, settings, open_lake(str(folder / "lake")), folder / "source", count_state=True).progress
    reports = {query: progress.report(query) for query in _STATEFUL}
    return {query: report.peak_state_rows or 0 for query, report in reports.items() if report}
