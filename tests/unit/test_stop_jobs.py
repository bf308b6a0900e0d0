"""Stopping the jobs of a lake: a driver in a process of its own holds the lock and looks whether it is to stop."""

import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from spark_jobs.config.sections import S3Settings
from spark_jobs.errors import LakeInUseError
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from spark_jobs.queries.jobs import ATTRIBUTE_JOB, DEDUPLICATE_JOB
from spark_jobs.streams.desired_state import RunState, Watch, read_desired, set_desired, stop_requested_at, write_watch
from spark_jobs.streams.stop_jobs import stop_jobs

_DRIVER = """
import sys, time
from spark_jobs.config.sections import S3Settings
from spark_jobs.lake.open import open_lake
from spark_jobs.lake.lock import hold_job
from spark_jobs.streams.desired_state import stop_requested_at
lake = open_lake(sys.argv[1])
with hold_job(lake, sys.argv[2], S3Settings()):
    print("held", flush=True)
    while not stop_requested_at(lake, sys.argv[2]):
        time.sleep(0.05)
"""
_JOB = ATTRIBUTE_JOB


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return open_lake(str(tmp_path / "lake"))


@pytest.fixture
def driver(lake: Lake) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-c", _DRIVER, str(lake.path), _JOB]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def _stop(lake: Lake, *jobs: str, patience_s: float = 30) -> list[tuple[str, bool]]:
    return list(stop_jobs(lake, jobs, S3Settings(), patience_s=patience_s, sleep=lambda _: time.sleep(0.05)))


def test_a_driver_is_asked_and_waited_for(lake: Lake, driver: "subprocess.Popen[str]") -> None:
    assert _stop(lake, DEDUPLICATE_JOB, _JOB) == [(DEDUPLICATE_JOB, False), (_JOB, True)]
    assert driver.wait(timeout=30) == 0
    assert stop_requested_at(lake, DEDUPLICATE_JOB) is None, "what does not run is not asked"
    assert read_desired(lake, _JOB) is None, "nobody supervises it"


def test_what_is_watched_over_is_not_wanted_any_more_and_left_to_its_watcher(
    lake: Lake, driver: "subprocess.Popen[str]"
) -> None:
    now = datetime.now(UTC)
    set_desired(lake, _JOB, RunState.RUNNING, "test", now)
    write_watch(lake, _JOB, Watch(name="test", looked_at=now))
    with pytest.raises(LakeInUseError, match=r"attribute .* is still running"):
        _stop(lake, _JOB, patience_s=0.2)
    wanted = read_desired(lake, _JOB)
    assert wanted is not None
    assert wanted.state is RunState.STOPPED
    assert stop_requested_at(lake, _JOB) is None
    assert driver.poll() is None


def test_what_is_watched_no_longer_or_paused_is_stopped_for_good(lake: Lake, driver: "subprocess.Popen[str]") -> None:
    now = datetime.now(UTC)
    set_desired(lake, _JOB, RunState.STOPPED, "test", now, until=now + timedelta(hours=1))
    write_watch(lake, _JOB, Watch(name="test", looked_at=now - timedelta(minutes=10)))
    assert _stop(lake, _JOB) == [(_JOB, True)]
    assert driver.wait(timeout=30) == 0
    wanted = read_desired(lake, _JOB)
    assert wanted is not None
    assert not wanted.runs_at(now + timedelta(hours=2))
