"""The parts of an embedded Airflow and what it watches; each is killed, and must come back."""

import os
import signal
from collections.abc import Callable
from functools import partial

from tests.airflow.conftest import JOBS
from tests.airflow.embedded import Airflow
from tests.support.airflow_client import AirflowClient
from tests.support.servers import wait_until

WATCHED = "deduplicate"
"""The job whose driver is killed."""
_LONGEST_S = 300
Kill = Callable[[Airflow], None]


def wait_for_one(airflow: Airflow, job: str) -> None:
    """Returns when ``job`` has one driver."""
    wait_until(lambda: len(airflow.drivers(job)) == 1, _LONGEST_S, f"{job} does not have exactly one driver")


def wait_until_watched(airflow: AirflowClient, job: str) -> None:
    """Returns when a task of Airflow watches ``job``."""
    wait_until(lambda: len(airflow.running(f"supervise_{job}")) == 1, _LONGEST_S, f"{job} is not watched")


def _kill_driver(airflow: Airflow) -> None:
    (killed,) = airflow.drivers(WATCHED)
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: airflow.drivers(WATCHED) not in ([], [killed]), _LONGEST_S, "it was not restarted")
    assert len(airflow.drivers(WATCHED)) == 1


def _kill_part(airflow: Airflow, name: str) -> None:
    """The death of a part of Airflow does not affect the drivers."""
    before = {job: airflow.drivers(job) for job in JOBS}
    killed = airflow.process(name)
    assert killed, f"there is no {name}"  # a signal to 0 goes to the whole group
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: airflow.process(name) not in (0, killed), _LONGEST_S, f"the {name} was not restarted")
    assert {job: airflow.drivers(job) for job in JOBS} == before


def _kill_supervisor(airflow: Airflow) -> None:
    """Asks its drivers to stop, as by SIGTERM; their successors wait for the lock of the job."""
    orphans = {job: airflow.drivers(job) for job in JOBS}
    os.kill(airflow.supervisor(), signal.SIGKILL)
    for job, (orphan,) in orphans.items():
        _wait_until_replaced(airflow, job, orphan)


def _wait_until_replaced(airflow: Airflow, job: str, orphan: int) -> None:
    wait_until(lambda: airflow.drivers(job) not in ([], [orphan]), _LONGEST_S, f"{job} was not replaced")
    wait_until(lambda: orphan not in airflow.drivers(job), _LONGEST_S, f"the orphan of {job} did not stop")


AIRFLOW_PARTS = ("triggerer", "scheduler", "dag-processor", "api-server", "execution-api")
"""The processes of Airflow, none of which a driver needs."""
PARTS: dict[str, Kill] = {
    "driver": _kill_driver,
    **{name: partial(_kill_part, name=name) for name in AIRFLOW_PARTS},
    "supervisord": _kill_supervisor,
}
"""By name, what kills the part and waits until it is back."""
