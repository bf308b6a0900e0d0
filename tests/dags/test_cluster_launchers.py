"""Drivers on a cluster: started once, asked before they are killed, and told apart from those that are gone.

The answers are those of the clusters' own documentation; `tests/stack/test_clusters.py` runs drivers on a real YARN.
"""

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from ad_dags.launchers import Driver, DriverState, LauncherError
from ad_dags.launchers.cluster import ClusterLauncher
from ad_dags.launchers.kubernetes import KubernetesCluster
from ad_dags.launchers.yarn import YarnCluster
from ad_dags.place import find_place
from spark_jobs.contracts.errors import SettingsError
from spark_jobs.contracts.lake import Lake, progress_key
from spark_jobs.contracts.progress import QueryReport
from spark_jobs.contracts.submission import application_name
from spark_jobs.runtime.lakes import open_lake
from spark_jobs.runtime.records import write_record
from spark_jobs.runtime.wanted import ask_to_stop, asked_to_stop

_NOW = datetime.now(UTC)
_ROOT = "s3a://ads/lake"
_JOB = "attribute"
_NAME = application_name(_ROOT, _JOB)


@dataclass
class _Rest:
    """A REST interface that answers as it is told, and notes what it is asked."""

    answers: dict[str, Any] = field(default_factory=dict)
    """By method and path, an object, a text or a number: the status of a refusal."""
    asked: list[str] = field(default_factory=list)
    tokens: set[str | None] = field(default_factory=set)
    port: int = 0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@pytest.fixture
def rest() -> Iterator[_Rest]:
    told = _Rest()

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            told.asked.append(f"{self.command} {self.path} {body}".strip())
            told.tokens.add(self.headers.get("Authorization"))
            found = told.answers.get(f"{self.command} {self.path.partition('?')[0]}", 404)
            self.send_response(found if isinstance(found, int) else 200)
            self.end_headers()
            self.wfile.write((found if isinstance(found, str) else json.dumps(found)).encode())

        do_GET = do_PUT = do_DELETE = _answer  # noqa: N815 the base asks for these names

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    told.port = server.server_port
    worker = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    worker.start()
    yield told
    server.shutdown()
    worker.join()
    server.server_close()


# The launcher's own rules.


@dataclass
class _Cluster:
    state: DriverState = DriverState.STOPPED
    asked: list[str] = field(default_factory=list)

    def look(self, job: str) -> Driver:
        return Driver(job, self.state, None, _NOW, "it said why")

    def kill(self, job: str) -> None:
        self.asked.append(f"kill {job}")
        self.state = DriverState.STOPPED

    def log(self, job: str, last_bytes: int) -> str:
        return f"{job}: {last_bytes}"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return open_lake(str(tmp_path / "lake"))


def _launcher(lake: Lake, cluster: _Cluster, patience: timedelta = timedelta(minutes=5)) -> ClusterLauncher:
    return ClusterLauncher(cluster, lake, lambda job: cluster.asked.append(f"submit {job}"), patience)


def test_a_start_clears_away_what_is_left_and_takes_back_what_was_asked(lake: Lake) -> None:
    cluster = _Cluster(DriverState.GIVEN_UP)
    ask_to_stop(lake, _JOB, _NOW)
    _launcher(lake, cluster).start(_JOB)
    assert cluster.asked == [f"kill {_JOB}", f"submit {_JOB}"]
    assert asked_to_stop(lake, _JOB) is None


@pytest.mark.parametrize("state", [DriverState.STARTING, DriverState.RUNNING, DriverState.DRAINING])
def test_what_is_alive_is_not_started_again(lake: Lake, state: DriverState) -> None:
    cluster = _Cluster(state)
    _launcher(lake, cluster).start(_JOB)
    assert cluster.asked == []


def test_it_is_asked_first_and_killed_when_it_does_not_heed(lake: Lake) -> None:
    cluster = _Cluster(DriverState.RUNNING)
    _launcher(lake, cluster).drain(_JOB)
    assert asked_to_stop(lake, _JOB)
    assert _launcher(lake, cluster).look(_JOB).state is DriverState.DRAINING
    _launcher(lake, cluster).drain(_JOB)
    assert cluster.asked == [], "it has time"
    _launcher(lake, cluster, patience=timedelta()).drain(_JOB)
    assert cluster.asked == [f"kill {_JOB}"]
    _launcher(lake, cluster, patience=timedelta()).drain(_JOB)
    assert cluster.asked == [f"kill {_JOB}"], "there is nothing to drain"


def test_its_process_is_the_one_that_last_told_of_itself(lake: Lake) -> None:
    cluster = _Cluster(DriverState.RUNNING)
    assert _launcher(lake, cluster).look(_JOB).process_id is None
    for query, process_id, age in (("attribute", 7, 1), ("sessionize", 6, 60)):
        begun = _NOW - timedelta(seconds=age)
        report = QueryReport(
            job=_JOB, query=query, version="1", process_id=process_id, started_at=begun, updated_at=begun
        )
        write_record(lake, progress_key(query), report)
    assert _launcher(lake, cluster).look(_JOB).process_id == 7
    cluster.state = DriverState.GIVEN_UP
    assert _launcher(lake, cluster).look(_JOB).process_id is None
    assert _launcher(lake, cluster).log(_JOB, 9) == f"{_JOB}: 9"


# YARN.


def _app(
    state: str, final: str = "UNDEFINED", *, begun: int = 1_000, finished: int = 0, number: int = 1
) -> dict[str, Any]:
    return {
        "id": f"application_1_000{number}",
        "state": state,
        "finalStatus": final,
        "startedTime": begun,
        "finishedTime": finished,
        "diagnostics": "it said why",
    }


@pytest.mark.parametrize(
    ("state", "final", "expected"),
    [
        ("NEW", "UNDEFINED", DriverState.STARTING),
        ("ACCEPTED", "UNDEFINED", DriverState.STARTING),
        ("RUNNING", "UNDEFINED", DriverState.RUNNING),
        ("FINISHED", "SUCCEEDED", DriverState.STOPPED),
        ("FINISHED", "FAILED", DriverState.GIVEN_UP),
        ("FAILED", "FAILED", DriverState.GIVEN_UP),
        ("KILLED", "KILLED", DriverState.STOPPED),
    ],
)
def test_the_newest_application_of_yarn_is_the_driver(
    rest: _Rest, state: str, final: str, expected: DriverState
) -> None:
    apps = [_app("FAILED", "FAILED", begun=500), _app(state, final, number=2), _app("KILLED", "KILLED", begun=600)]
    rest.answers["GET /ws/v1/cluster/apps"] = {"apps": {"app": apps}}
    found = YarnCluster(rest.address, _ROOT, "ads").look(_JOB)
    assert found.state is expected
    assert found.told == f"application_1_0002 {state.lower()} it said why"
    assert rest.asked == [f"GET /ws/v1/cluster/apps?applicationTags={_NAME}&user.name=ads"]


@pytest.mark.parametrize("nothing", [{"apps": None}, {"apps": {}}, {"apps": {"app": []}}])
def test_without_an_application_there_is_no_driver_and_nothing_to_kill(rest: _Rest, nothing: object) -> None:
    rest.answers["GET /ws/v1/cluster/apps"] = nothing
    cluster = YarnCluster(rest.address, _ROOT, "ads")
    assert cluster.look(_JOB).state is DriverState.STOPPED
    cluster.kill(_JOB)
    assert cluster.log(_JOB, 10) == ""
    assert not any(asked.startswith("PUT") for asked in rest.asked)


def test_an_application_is_killed_by_its_number(rest: _Rest) -> None:
    rest.answers["GET /ws/v1/cluster/apps"] = {"apps": {"app": [_app("RUNNING")]}}
    rest.answers["PUT /ws/v1/cluster/apps/application_1_0001/state"] = {"state": "KILLED"}
    YarnCluster(rest.address, _ROOT, "ads").kill(_JOB)
    assert rest.asked[-1] == 'PUT /ws/v1/cluster/apps/application_1_0001/state?user.name=ads {"state": "KILLED"}'


# Kubernetes.


def _pod(phase: str, **status: Any) -> dict[str, Any]:
    return {"metadata": {"name": _NAME}, "status": {"phase": phase, "startTime": "2026-03-01T12:00:00Z", **status}}


_POD = f"/api/v1/namespaces/ads/pods/{_NAME}"


def _kubernetes(rest: _Rest, account: Path) -> KubernetesCluster:
    account.mkdir(exist_ok=True)
    (account / "token").write_text("canary-token\n")
    return KubernetesCluster(rest.address, _ROOT, "ads", account)


@pytest.mark.parametrize(
    ("phase", "expected"),
    [
        ("Pending", DriverState.STARTING),
        ("Running", DriverState.RUNNING),
        ("Succeeded", DriverState.STOPPED),
        ("Failed", DriverState.GIVEN_UP),
        ("Unknown", DriverState.RUNNING),
    ],
)
def test_the_pod_of_its_name_is_the_driver(rest: _Rest, tmp_path: Path, phase: str, expected: DriverState) -> None:
    rest.answers[f"GET {_POD}"] = _pod(phase)
    found = _kubernetes(rest, tmp_path / "account").look(_JOB)
    assert (found.state, found.since) == (expected, datetime(2026, 3, 1, 12, tzinfo=UTC))
    assert rest.tokens == {"Bearer canary-token"}


def test_a_pod_says_why_and_when_it_is_going(rest: _Rest, tmp_path: Path) -> None:
    cluster = _kubernetes(rest, tmp_path / "account")
    assert cluster.look(_JOB).state is DriverState.STOPPED, "there is none"
    ended = {"terminated": {"reason": "OOMKilled", "exitCode": 137}}
    rest.answers[f"GET {_POD}"] = _pod("Failed", containerStatuses=[{"state": ended}])
    assert cluster.look(_JOB).told == f"pod {_NAME} failed OOMKilled, exit code 137"
    going = _pod("Running")
    going["metadata"]["deletionTimestamp"] = "2026-03-01T12:30:00Z"
    rest.answers[f"GET {_POD}"] = going
    assert cluster.look(_JOB).state is DriverState.DRAINING


def test_a_pod_is_deleted_and_its_log_read(rest: _Rest, tmp_path: Path) -> None:
    cluster = _kubernetes(rest, tmp_path / "account")
    cluster.kill(_JOB)  # there is none: nothing to do
    rest.answers[f"DELETE {_POD}"] = {}
    rest.answers[f"GET {_POD}/log"] = "one\ntwo\n"
    cluster.kill(_JOB)
    assert rest.asked[-1] == f"DELETE {_POD}?gracePeriodSeconds=0"
    assert cluster.log(_JOB, 4) == "two\n"


# What goes wrong.


def test_a_refusal_is_told_and_the_token_is_not(rest: _Rest, tmp_path: Path) -> None:
    cluster = _kubernetes(rest, tmp_path / "account")
    rest.answers[f"GET {_POD}"] = 403
    with pytest.raises(LauncherError, match=rf"Kubernetes at {rest.address} answers GET {_POD} with 403") as refused:
        cluster.look(_JOB)
    assert "canary" not in f"{refused.value!r} {cluster._rest!r}"
    rest.answers[f"GET {_POD}"] = "<html>"
    with pytest.raises(LauncherError, match="with no JSON"):
        cluster.look(_JOB)


def test_a_cluster_that_is_away_is_told() -> None:
    with pytest.raises(LauncherError, match=r"YARN.s ResourceManager at http://127\.0\.0\.1:1 does not answer"):
        YarnCluster("http://127.0.0.1:1", _ROOT, "ads").look(_JOB)


# Which one it is.


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({}, "ADLOOM_LAKE not set"),
        ({"ADLOOM_LAKE": "lake"}, "ADLOOM_SUPERVISOR_ADDRESS, ADLOOM_SUPERVISOR_PASSWORD not set"),
        ({"ADLOOM_LAKE": "lake", "ADLOOM_CLUSTER": "yarn"}, "ADLOOM_YARN_ADDRESS not set"),
        ({"ADLOOM_LAKE": "lake", "ADLOOM_CLUSTER": "mesos"}, "'mesos' is no cluster that runs drivers"),
    ],
)
def test_what_is_missing_is_named(told: dict[str, str], why: str) -> None:
    with pytest.raises(SettingsError, match=why):
        find_place(told)


@pytest.mark.parametrize(
    "told",
    [
        {"ADLOOM_CLUSTER": "yarn", "ADLOOM_YARN_ADDRESS": "http://127.0.0.1:1"},
        {"ADLOOM_CLUSTER": "k8s://https://127.0.0.1:1", "ADLOOM_KUBERNETES_NAMESPACE": "ads"},
    ],
)
def test_a_cluster_is_taken_where_one_is_named(told: dict[str, str], tmp_path: Path) -> None:
    assert isinstance(find_place({"ADLOOM_LAKE": str(tmp_path), **told}).launcher, ClusterLauncher)
