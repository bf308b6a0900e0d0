"""The long version of the kill tests: `make test-kill`."""

import signal
from pathlib import Path

import pytest

from spark_jobs.lake.open import open_lake
from tests.support.crashing import MOMENTS
from tests.support.drivers import kill_repeatedly, start_run
from tests.support.equality import assert_lake_equals_oracle, generate_source

pytestmark = pytest.mark.slow


def test_twenty_kills_change_no_row(tmp_path: Path) -> None:
    source = generate_source(tmp_path / "source", events=40_000, seed=20, files=60)
    lake = open_lake(str(tmp_path / "lake"))
    assert kill_repeatedly(source, lake.path, kills=20, longest_work_s=5, seed=21) == 20
    assert_lake_equals_oracle(lake, source)


def test_a_kill_between_the_commit_of_a_table_and_the_commit_of_its_query_changes_no_row(tmp_path: Path) -> None:
    source = generate_source(tmp_path / "source", events=2000, seed=5, files=4)
    lake = open_lake(str(tmp_path / "lake"))
    for moment in ("commit:bronze:1", "commit:silver:2", "commit:attributions:3", "commit:sessions:4"):
        driver = start_run(source, lake.path, crash_after=moment)
        output, _ = driver.process.communicate(timeout=200)
        assert driver.process.returncode == -signal.SIGKILL, f"{moment}: {output}"
    start_run(source, lake.path).finish()
    assert_lake_equals_oracle(lake, source)


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_kill_in_a_batch_of_the_job_measure_changes_no_row(moment: str, tmp_path: Path) -> None:
    source = generate_source(tmp_path / "source", events=2000, seed=6, files=5)
    lake = open_lake(str(tmp_path / "lake"))
    for table in ("user_status", "campaign_stats", "moving_averages"):
        driver = start_run(source, lake.path, crash_after=f"{moment}:{table}:*")
        output, _ = driver.process.communicate(timeout=200)
        assert driver.process.returncode == -signal.SIGKILL, f"{moment}: {output}"
    start_run(source, lake.path).finish()
    assert_lake_equals_oracle(lake, source)
