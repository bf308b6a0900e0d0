"""Airflow for real: a deployment, each part of it killed again and again, and rows that equal the oracle."""

import os
import signal
import urllib.error
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from spark_jobs.contracts.jobs import QUERIES_OF_JOB
from spark_jobs.contracts.lake import Lake
from spark_jobs.contracts.tables import BRONZE_EVENTS
from spark_jobs.sources.files import read_records
from tests.airflow.embedded import Airflow
from tests.stack.flow import adloom, send
from tests.stack.kafka import Kafka
from tests.support.equality import assert_lake_equals_oracle, generate_source
from tests.support.lakes import read_table
from tests.support.servers import wait_until

_KILLS = int(os.environ.get("KILLS", "0"))
"""Of each part; without a number two parts are killed once."""
_LONGEST_S = 300
_WATCHED = "deduplicate"
Kill = Callable[[Airflow], None]

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(1200 + 600 * _KILLS)]


def test_whatever_is_killed_there_is_one_driver_and_no_row_is_lost(
    airflow: Airflow, kafka: Kafka, topic: str, lake: Lake, tmp_path: Path
) -> None:
    kills = [*_PARTS] * _KILLS or ["driver", "triggerer"]
    source = generate_source(tmp_path / "source", events=600 * (len(kills) + 1), seed=95)
    records = list(read_records(source))
    share = len(records) // (len(kills) + 1) + 1
    send(kafka, topic, records[:share])

    with pytest.raises(urllib.error.HTTPError, match="403"):
        airflow.call("POST", "/dags/deploy_streams/dagRuns", {"logical_date": None, "conf": {}}, user="viewer")
    with pytest.raises(urllib.error.HTTPError, match=r"40\d|422"):
        airflow.trigger("deploy_streams", release="1.0.0; touch pwned")
    airflow.wait_for("deploy_streams", airflow.trigger("deploy_streams"), "success")
    for job in QUERIES_OF_JOB:
        _wait_for_one(airflow, job)
        _wait_until_watched(airflow, job)

    for number, part in enumerate(kills, start=1):
        send(kafka, topic, records[number * share : (number + 1) * share])
        _PARTS[part](airflow)
        for job in QUERIES_OF_JOB:
            _wait_for_one(airflow, job)
    wait_until(lambda: len(read_table(lake, BRONZE_EVENTS)) == len(records), _LONGEST_S, "not all came in")

    # The watch is still there: what is marked is drained, and the other job is not.
    (run,) = airflow.running("supervise_attribute")
    airflow.mark("supervise_attribute", run, "supervise", "failed")
    wait_until(lambda: airflow.drivers("attribute") == [], _LONGEST_S, "it was not drained")
    assert not airflow.is_wanted("attribute")
    assert airflow.is_wanted(_WATCHED)
    _wait_for_one(airflow, _WATCHED)

    airflow.wait_for("deploy_streams", airflow.trigger("deploy_streams", action="drain"), "success")
    assert airflow.left() == []
    adloom("drain", "--lake", lake.root)
    assert_lake_equals_oracle(lake, source)


def _wait_for_one(airflow: Airflow, job: str) -> None:
    wait_until(lambda: len(airflow.drivers(job)) == 1, _LONGEST_S, f"{job} has not one driver")


def _wait_until_watched(airflow: Airflow, job: str) -> None:
    wait_until(lambda: len(airflow.running(f"supervise_{job}")) == 1, _LONGEST_S, f"{job} is not watched")


def _kill_driver(airflow: Airflow) -> None:
    (killed,) = airflow.drivers(_WATCHED)
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: airflow.drivers(_WATCHED) not in ([], [killed]), _LONGEST_S, "it was not started again")
    assert len(airflow.drivers(_WATCHED)) == 1


def _kill_part(airflow: Airflow, name: str) -> None:
    """A dead part of Airflow changes nothing for the drivers."""
    before = {job: airflow.drivers(job) for job in QUERIES_OF_JOB}
    killed = airflow.process(name)
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: airflow.process(name) not in (0, killed), _LONGEST_S, f"the {name} was not started again")
    assert {job: airflow.drivers(job) for job in QUERIES_OF_JOB} == before


def _kill_supervisor(airflow: Airflow) -> None:
    """Its drivers are told to stop, as by SIGTERM; those that take their place wait for the lock of the job."""
    orphans = {job: airflow.drivers(job) for job in QUERIES_OF_JOB}
    os.kill(airflow.supervisor(), signal.SIGKILL)
    for job, (orphan,) in orphans.items():
        _wait_until_replaced(airflow, job, orphan)


def _wait_until_replaced(airflow: Airflow, job: str, orphan: int) -> None:
    wait_until(lambda: airflow.drivers(job) not in ([], [orphan]), _LONGEST_S, f"nobody took the place of {job}")
    wait_until(lambda: orphan not in airflow.drivers(job), _LONGEST_S, f"the orphan of {job} did not stop")


_PARTS: dict[str, Kill] = {
    "driver": _kill_driver,
    "triggerer": partial(_kill_part, name="triggerer"),
    "scheduler": partial(_kill_part, name="scheduler"),
    "supervisord": _kill_supervisor,
}
