"""Drivers on a cluster: started once, asked to stop before they are killed, and distinguished from those that are gone.

`tests/stack/test_clusters.py` runs drivers on a real YARN.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from ad_dags.connection.lake_connection import connect
from ad_dags.drivers.launchers import Driver, DriverState, LauncherError
from ad_dags.drivers.launchers.cluster import ClusterLauncher
from ad_dags.drivers.launchers.yarn import YarnCluster
from spark_jobs.errors import SettingsError
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from spark_jobs.streams.desired_state import request_stop, stop_requested_at
from tests.dags.fake_clusters import JOB, NAME, NOW, ROOT, Clock, FakeRest, app, serve, write_report
from tests.dags.fakes import LAKE


@pytest.fixture
def rest() -> Iterator[FakeRest]:
    with serve() as fake:
        yield fake


# The launcher's own rules.


@dataclass
class _Cluster:
    state: DriverState = DriverState.STOPPED
    calls: list[str] = field(default_factory=list)

    def inspect(self, job: str) -> Driver:
        return Driver(job, self.state, None, NOW, "the reason")

    def kill(self, job: str) -> None:
        self.calls.append(f"kill {job}")
        self.state = DriverState.STOPPED

    def log(self, job: str, last_bytes: int) -> str:
        return f"{job}: {last_bytes}"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return open_lake(str(tmp_path / "lake"))


_PATIENCE = timedelta(minutes=6)


def _launcher(lake: Lake, cluster: _Cluster, clock: Clock | None = None) -> ClusterLauncher:
    submit = partial(_submit, cluster)
    return ClusterLauncher(cluster, lake, submit, _PATIENCE, clock or Clock())


def _submit(cluster: _Cluster, job: str) -> None:
    cluster.calls.append(f"submit {job}")
    cluster.state = DriverState.STARTING


def test_a_start_removes_what_is_left_and_clears_the_request_to_stop(lake: Lake) -> None:
    cluster = _Cluster(DriverState.FAILED)
    request_stop(lake, JOB, NOW)
    _launcher(lake, cluster).start(JOB)
    assert cluster.calls == [f"kill {JOB}", f"submit {JOB}"]
    assert stop_requested_at(lake, JOB) is None


@pytest.mark.parametrize("state", [DriverState.STARTING, DriverState.RUNNING, DriverState.STOPPING])
def test_a_driver_that_is_alive_is_not_started_again(lake: Lake, state: DriverState) -> None:
    cluster = _Cluster(state)
    _launcher(lake, cluster).start(JOB)
    assert cluster.calls == []


def test_a_driver_is_asked_to_stop_first_and_killed_when_it_does_not(lake: Lake) -> None:
    cluster, clock = _Cluster(DriverState.RUNNING), Clock()
    launcher = _launcher(lake, cluster, clock)
    launcher.stop(JOB)
    assert stop_requested_at(lake, JOB) == clock.now
    assert launcher.inspect(JOB).state is DriverState.STOPPING
    clock.now += _PATIENCE
    launcher.stop(JOB)
    assert cluster.calls == [], "it still has time"
    clock.now += timedelta(seconds=1)
    launcher.stop(JOB)
    assert cluster.calls == [f"kill {JOB}"]
    launcher.stop(JOB)
    assert cluster.calls == [f"kill {JOB}"], "there is nothing to stop"


def test_its_process_is_the_one_of_the_latestwrite_report(lake: Lake) -> None:
    cluster = _Cluster(DriverState.RUNNING)
    assert _launcher(lake, cluster).inspect(JOB).process_id is None
    write_report(lake, "attribute", 7, NOW - timedelta(seconds=1))
    write_report(lake, "sessionize", 6, NOW - timedelta(seconds=60))
    assert _launcher(lake, cluster).inspect(JOB).process_id == 7
    cluster.state = DriverState.FAILED
    assert _launcher(lake, cluster).inspect(JOB).process_id is None
    assert _launcher(lake, cluster).log(JOB, 9) == f"{JOB}: 9"


# YARN.


@pytest.mark.parametrize(
    ("state", "final", "expected"),
    [
        ("NEW", "UNDEFINED", DriverState.STARTING),
        ("ACCEPTED", "UNDEFINED", DriverState.STARTING),
        ("RUNNING", "UNDEFINED", DriverState.RUNNING),
        ("FINISHED", "SUCCEEDED", DriverState.STOPPED),
        ("FINISHED", "FAILED", DriverState.FAILED),
        ("FAILED", "FAILED", DriverState.FAILED),
        ("KILLED", "KILLED", DriverState.STOPPED),
    ],
)
def test_the_newest_application_of_yarn_is_the_driver(
    rest: FakeRest, state: str, final: str, expected: DriverState
) -> None:
    apps = [app("FAILED", "FAILED", started=500), app(state, final, number=2), app("KILLED", "KILLED", started=600)]
    rest.answers["GET /ws/v1/cluster/apps"] = {"apps": {"app": apps}}
    driver = YarnCluster(rest.address, ROOT, "ads").inspect(JOB)
    assert driver.state is expected
    assert driver.detail == f"application_1_0002 {state.lower()} the reason"
    assert rest.requests == [f"GET /ws/v1/cluster/apps?applicationTags={NAME}&user.name=ads"]


@pytest.mark.parametrize("nothing", [{"apps": None}, {"apps": {}}, {"apps": {"app": []}}])
def test_without_an_application_there_is_no_driver_and_nothing_to_kill(rest: FakeRest, nothing: object) -> None:
    rest.answers["GET /ws/v1/cluster/apps"] = nothing
    cluster = YarnCluster(rest.address, ROOT, "ads")
    assert cluster.inspect(JOB).state is DriverState.STOPPED
    cluster.kill(JOB)
    assert cluster.log(JOB, 10) == ""
    assert not any(request.startswith("PUT") for request in rest.requests)


def test_an_application_is_killed_by_its_number(rest: FakeRest) -> None:
    rest.answers["GET /ws/v1/cluster/apps"] = {"apps": {"app": [app("RUNNING")]}}
    rest.answers["PUT /ws/v1/cluster/apps/application_1_0001/state"] = {"state": "KILLED"}
    YarnCluster(rest.address, ROOT, "ads").kill(JOB)
    assert rest.requests[-1] == 'PUT /ws/v1/cluster/apps/application_1_0001/state?user.name=ads {"state": "KILLED"}'


# What goes wrong.


def test_a_cluster_that_does_not_answer_is_named() -> None:
    with pytest.raises(LauncherError, match=r"YARN.s ResourceManager at http://127\.0\.0\.1:1 does not answer"):
        YarnCluster("http://127.0.0.1:1", ROOT, "ads").inspect(JOB)


# Which cluster it is.


@pytest.mark.parametrize(
    ("environment", "why"),
    [
        ({}, "ADLOOM_LAKE not set"),
        ({"ADLOOM_LAKE": "lake"}, "ADLOOM_SUPERVISOR_ADDRESS, ADLOOM_SUPERVISOR_PASSWORD not set"),
        ({"ADLOOM_LAKE": "lake", "ADLOOM_CLUSTER": "yarn"}, "ADLOOM_YARN_ADDRESS not set"),
        ({"ADLOOM_LAKE": "lake", "ADLOOM_CLUSTER": "mesos"}, "'mesos' is not a cluster that can run drivers"),
    ],
)
def test_what_is_missing_is_named(environment: dict[str, str], why: str) -> None:
    with pytest.raises(SettingsError, match=why):
        connect(LAKE, environment)


@pytest.mark.parametrize(
    "environment",
    [
        {"ADLOOM_CLUSTER": "yarn", "ADLOOM_YARN_ADDRESS": "http://127.0.0.1:1"},
        {"ADLOOM_CLUSTER": "k8s://https://127.0.0.1:1", "ADLOOM_KUBERNETES_NAMESPACE": "ads"},
    ],
)
def test_the_cluster_that_is_named_is_used(environment: dict[str, str], tmp_path: Path) -> None:
    assert isinstance(connect(LAKE, {"ADLOOM_LAKE": str(tmp_path), **environment}).launcher, ClusterLauncher)
