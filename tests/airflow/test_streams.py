"""Airflow for real: a deployment, its driver killed, the job marked and drained, and rows that equal the oracle."""

import os
import shutil
import signal
import urllib.error
from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_jobs.contracts.tables import BRONZE_EVENTS
from spark_jobs.runtime.lakes import open_lake
from tests.airflow.embedded import Airflow
from tests.stack.flow import adloom
from tests.support.equality import assert_lake_equals_oracle, generate_source
from tests.support.lakes import read_table
from tests.support.servers import wait_until

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(1500)]


@pytest.fixture
def airflow(tmp_path: Path) -> Iterator[Airflow]:
    (tmp_path / "source").mkdir()
    own = Airflow(tmp_path / "airflow", open_lake(str(tmp_path / "lake")), tmp_path / "source")
    told = own.start()
    assert f"http://127.0.0.1:{own.port}" in told
    yield own
    own.stop()
    assert own.left() == []


def test_a_job_is_deployed_watched_killed_and_drained(airflow: Airflow, tmp_path: Path) -> None:
    whole = generate_source(tmp_path / "whole", events=3000, seed=95, files=4)
    files = sorted(whole.iterdir())
    shutil.copy2(files[0], airflow.source)

    with pytest.raises(urllib.error.HTTPError, match="403"):
        airflow.call("POST", "/dags/deploy_streams/dagRuns", {"logical_date": None, "conf": {}}, user="viewer")
    with pytest.raises(urllib.error.HTTPError, match=r"40\d|422"):
        airflow.trigger("deploy_streams", release="1.0.0; touch pwned")

    airflow.wait_for("deploy_streams", airflow.trigger("deploy_streams"), "success")
    for job in ("deduplicate", "attribute"):
        assert len(airflow.drivers(job)) == 1
        wait_until(lambda dag=f"supervise_{job}": len(airflow.running(dag)) == 1, 300, f"{job} is not supervised")  # type: ignore[misc]

    for file in files[1:]:
        (killed,) = airflow.drivers("deduplicate")
        shutil.copy2(file, airflow.source)
        os.kill(killed, signal.SIGKILL)
        wait_until(lambda gone=killed: airflow.drivers("deduplicate") not in ([], [gone]), 120, "it was not started")  # type: ignore[misc]
        assert len(airflow.drivers("deduplicate")) == 1
    # Its drivers are told to stop, as by SIGTERM, and those that take their place wait for the lock of the job.
    (orphan,), supervisor = airflow.drivers("deduplicate"), airflow.supervisor()
    os.kill(supervisor, signal.SIGKILL)
    wait_until(lambda: airflow.drivers("deduplicate") not in ([], [orphan]), 240, "nobody took its place")
    wait_until(lambda: orphan not in airflow.drivers("deduplicate"), 60, "the orphan did not stop")
    assert len(airflow.drivers("deduplicate")) == 1
    records = sum(len(file.read_bytes().splitlines()) for file in files)
    wait_until(lambda: len(read_table(airflow.lake, BRONZE_EVENTS)) == records, 300, "not all came in")

    (run,) = airflow.running("supervise_attribute")
    airflow.mark("supervise_attribute", run, "supervise", "failed")
    wait_until(lambda: airflow.drivers("attribute") == [], 120, "it was not drained")
    assert not airflow.is_wanted("attribute")
    assert airflow.is_wanted("deduplicate")

    airflow.wait_for("deploy_streams", airflow.trigger("deploy_streams", action="drain"), "success")
    assert airflow.left() == []
    adloom("drain", "--lake", str(airflow.lake.path))
    assert_lake_equals_oracle(airflow.lake, whole)
