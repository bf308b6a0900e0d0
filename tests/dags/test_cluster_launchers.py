"""Drivers on a cluster: started once, asked to stop before they are killed, and distinguished from those that are gone.

The responses follow the documentation of the clusters; `tests/stack/test_clusters.py` runs drivers on a real YARN.
"""

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol

import pytest

from ad_dags import job_control
from ad_dags.launchers import Driver, DriverState, LauncherError
from ad_dags.launchers.cluster import Cluster, ClusterLauncher
from ad_dags.launchers.kubernetes import KubernetesCluster
from ad_dags.launchers.yarn import YarnCluster
from ad_dags.place import Place, find_place
from ad_dags.supervision.rules import Limits, Memory
from ad_dags.supervision.watch import supervise_once
from ad_dags.tasks import reconcile
from spark_jobs.contracts.errors import SettingsError
from spark_jobs.contracts.lake import Lake, progress_key
from spark_jobs.contracts.progress import QueryReport
from spark_jobs.contracts.settings import Settings
from spark_jobs.contracts.submission import application_name
from spark_jobs.contracts.wanted import WantedState
from spark_jobs.runtime.lakes import open_lake
from spark_jobs.runtime.records import write_record
from spark_jobs.runtime.wanted import request_stop, stop_requested_at, want

_NOW = datetime.now(UTC)
_ROOT = "s3a://ads/lake"
_JOB = "attribute"
_NAME = application_name(_ROOT, _JOB)


@dataclass
class _Rest:
    """A REST interface with canned answers, which records the requests."""

    answers: dict[str, Any] = field(default_factory=dict)
    """By method and path: an object, a text, or a number, which is the status of an error."""
    requests: list[str] = field(default_factory=list)
    tokens: list[str | None] = field(default_factory=list)
    on_request: Callable[[str], object] = str
    """Called with each request before it is answered."""
    port: int = 0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@pytest.fixture
def rest() -> Iterator[_Rest]:
    fake = _Rest()

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            fake.requests.append(f"{self.command} {self.path} {body}".strip())
            fake.on_request(fake.requests[-1])
            fake.tokens.append(self.headers.get("Authorization"))
            found = fake.answers.get(f"{self.command} {self.path.partition('?')[0]}", 404)
            self.send_response(found if isinstance(found, int) else 200)
            self.end_headers()
            self.wfile.write((found if isinstance(found, str) else json.dumps(found)).encode())

        do_GET = do_PUT = do_DELETE = _answer  # noqa: N815 names required by the base class

        def log_message(self, *_: object) -> None:
            """Logs nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    fake.port = server.server_port
    worker = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    worker.start()
    yield fake
    server.shutdown()
    worker.join()
    server.server_close()


# The launcher's own rules.


@dataclass
class _Clock:
    """A clock that stands still until it is set."""

    now: datetime = _NOW

    def __call__(self) -> datetime:
        return self.now


@dataclass
class _Cluster:
    state: DriverState = DriverState.STOPPED
    calls: list[str] = field(default_factory=list)

    def inspect(self, job: str) -> Driver:
        return Driver(job, self.state, None, _NOW, "the reason")

    def kill(self, job: str) -> None:
        self.calls.append(f"kill {job}")
        self.state = DriverState.STOPPED

    def log(self, job: str, last_bytes: int) -> str:
        return f"{job}: {last_bytes}"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return open_lake(str(tmp_path / "lake"))


_PATIENCE = timedelta(minutes=6)


def _launcher(lake: Lake, cluster: _Cluster, clock: _Clock | None = None) -> ClusterLauncher:
    submit = partial(_submit, cluster)
    return ClusterLauncher(cluster, lake, submit, _PATIENCE, clock or _Clock())


def _submit(cluster: _Cluster, job: str) -> None:
    cluster.calls.append(f"submit {job}")
    cluster.state = DriverState.STARTING


def test_a_start_removes_what_is_left_and_clears_the_request_to_stop(lake: Lake) -> None:
    cluster = _Cluster(DriverState.GIVEN_UP)
    request_stop(lake, _JOB, _NOW)
    _launcher(lake, cluster).start(_JOB)
    assert cluster.calls == [f"kill {_JOB}", f"submit {_JOB}"]
    assert stop_requested_at(lake, _JOB) is None


@pytest.mark.parametrize("state", [DriverState.STARTING, DriverState.RUNNING, DriverState.STOPPING])
def test_a_driver_that_is_alive_is_not_started_again(lake: Lake, state: DriverState) -> None:
    cluster = _Cluster(state)
    _launcher(lake, cluster).start(_JOB)
    assert cluster.calls == []


def test_a_driver_is_asked_to_stop_first_and_killed_when_it_does_not(lake: Lake) -> None:
    cluster, clock = _Cluster(DriverState.RUNNING), _Clock()
    launcher = _launcher(lake, cluster, clock)
    launcher.stop(_JOB)
    assert stop_requested_at(lake, _JOB) == clock.now
    assert launcher.inspect(_JOB).state is DriverState.STOPPING
    clock.now += _PATIENCE
    launcher.stop(_JOB)
    assert cluster.calls == [], "it still has time"
    clock.now += timedelta(seconds=1)
    launcher.stop(_JOB)
    assert cluster.calls == [f"kill {_JOB}"]
    launcher.stop(_JOB)
    assert cluster.calls == [f"kill {_JOB}"], "there is nothing to stop"


def test_its_process_is_the_one_of_the_latest_report(lake: Lake) -> None:
    cluster = _Cluster(DriverState.RUNNING)
    assert _launcher(lake, cluster).inspect(_JOB).process_id is None
    _report(lake, "attribute", 7, _NOW - timedelta(seconds=1))
    _report(lake, "sessionize", 6, _NOW - timedelta(seconds=60))
    assert _launcher(lake, cluster).inspect(_JOB).process_id == 7
    cluster.state = DriverState.GIVEN_UP
    assert _launcher(lake, cluster).inspect(_JOB).process_id is None
    assert _launcher(lake, cluster).log(_JOB, 9) == f"{_JOB}: 9"


def _report(lake: Lake, query: str, process_id: int, at: datetime) -> None:
    report = QueryReport(job=_JOB, query=query, version="1", process_id=process_id, started_at=at, updated_at=at)
    write_record(lake, progress_key(query), report)


# YARN.


def _app(
    state: str, final: str = "UNDEFINED", *, started: int = 1_000, finished: int = 0, number: int = 1
) -> dict[str, Any]:
    return {
        "id": f"application_1_000{number}",
        "state": state,
        "finalStatus": final,
        "startedTime": started,
        "finishedTime": finished,
        "diagnostics": "the reason",
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
    apps = [_app("FAILED", "FAILED", started=500), _app(state, final, number=2), _app("KILLED", "KILLED", started=600)]
    rest.answers["GET /ws/v1/cluster/apps"] = {"apps": {"app": apps}}
    driver = YarnCluster(rest.address, _ROOT, "ads").inspect(_JOB)
    assert driver.state is expected
    assert driver.detail == f"application_1_0002 {state.lower()} the reason"
    assert rest.requests == [f"GET /ws/v1/cluster/apps?applicationTags={_NAME}&user.name=ads"]


@pytest.mark.parametrize("nothing", [{"apps": None}, {"apps": {}}, {"apps": {"app": []}}])
def test_without_an_application_there_is_no_driver_and_nothing_to_kill(rest: _Rest, nothing: object) -> None:
    rest.answers["GET /ws/v1/cluster/apps"] = nothing
    cluster = YarnCluster(rest.address, _ROOT, "ads")
    assert cluster.inspect(_JOB).state is DriverState.STOPPED
    cluster.kill(_JOB)
    assert cluster.log(_JOB, 10) == ""
    assert not any(request.startswith("PUT") for request in rest.requests)


def test_an_application_is_killed_by_its_number(rest: _Rest) -> None:
    rest.answers["GET /ws/v1/cluster/apps"] = {"apps": {"app": [_app("RUNNING")]}}
    rest.answers["PUT /ws/v1/cluster/apps/application_1_0001/state"] = {"state": "KILLED"}
    YarnCluster(rest.address, _ROOT, "ads").kill(_JOB)
    assert rest.requests[-1] == 'PUT /ws/v1/cluster/apps/application_1_0001/state?user.name=ads {"state": "KILLED"}'


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
    found = _kubernetes(rest, tmp_path / "account").inspect(_JOB)
    assert (found.state, found.since) == (expected, datetime(2026, 3, 1, 12, tzinfo=UTC))
    assert rest.tokens == ["Bearer canary-token"]


def test_a_pod_says_why_it_failed_and_that_it_is_being_deleted(rest: _Rest, tmp_path: Path) -> None:
    cluster = _kubernetes(rest, tmp_path / "account")
    assert cluster.inspect(_JOB).state is DriverState.STOPPED, "there is no pod"
    ended = {"terminated": {"reason": "OOMKilled", "exitCode": 137}}
    rest.answers[f"GET {_POD}"] = _pod("Failed", containerStatuses=[{"state": ended}])
    assert cluster.inspect(_JOB).detail == f"pod {_NAME} failed OOMKilled, exit code 137"
    deleted = _pod("Running")
    deleted["metadata"]["deletionTimestamp"] = "2026-03-01T12:30:00Z"
    rest.answers[f"GET {_POD}"] = deleted
    assert cluster.inspect(_JOB).state is DriverState.STOPPING


def test_a_pod_is_deleted_and_its_log_read(rest: _Rest, tmp_path: Path) -> None:
    cluster = _kubernetes(rest, tmp_path / "account")
    cluster.kill(_JOB)  # there is none
    rest.answers[f"DELETE {_POD}"] = {}
    rest.answers[f"GET {_POD}/log"] = "one\ntwo\n"
    cluster.kill(_JOB)
    assert rest.requests[-1] == f"DELETE {_POD}?gracePeriodSeconds=0"
    assert cluster.log(_JOB, 4) == "two\n"


# A driver that hangs, watched and reconciled.


class _Hung(Protocol):
    """A cluster behind its REST interface, with a driver of the job that neither reports nor heeds requests."""

    cluster: Cluster
    is_alive: bool

    def submit(self, job: str) -> None:
        """A new driver takes the place of the one that was killed."""


class _HungOnYarn:
    def __init__(self, rest: _Rest, _folder: Path) -> None:
        self._rest, self.cluster = rest, YarnCluster(rest.address, _ROOT, "ads")
        self.is_alive, self._number = True, 0
        self.submit(_JOB)
        rest.on_request = self._on_request

    def submit(self, _job: str) -> None:
        self.is_alive, self._number = True, self._number + 1
        self._show("RUNNING")

    def _show(self, state: str) -> None:
        final = "KILLED" if state == "KILLED" else "UNDEFINED"
        app = _app(state, final, started=1_000 * self._number, number=self._number)
        self._rest.answers["GET /ws/v1/cluster/apps"] = {"apps": {"app": [app]}}
        self._rest.answers[f"PUT /ws/v1/cluster/apps/{app['id']}/state"] = {"state": state}

    def _on_request(self, request: str) -> None:
        if request.startswith("PUT"):
            self.is_alive = False
            self._show("KILLED")


class _HungOnKubernetes:
    def __init__(self, rest: _Rest, folder: Path) -> None:
        self._rest, self.cluster = rest, _kubernetes(rest, folder)
        self.submit(_JOB)
        rest.on_request = self._on_request

    def submit(self, _job: str) -> None:
        self.is_alive = True
        self._rest.answers |= {f"GET {_POD}": _pod("Running"), f"DELETE {_POD}": _pod("Running")}

    def _on_request(self, request: str) -> None:
        if request.startswith("DELETE"):
            self.is_alive = False
            self._rest.answers[f"GET {_POD}"] = 404


@pytest.fixture(params=[_HungOnYarn, _HungOnKubernetes], ids=["yarn", "kubernetes"])
def hung(request: pytest.FixtureRequest, rest: _Rest, tmp_path: Path) -> _Hung:
    found: _Hung = request.param(rest, tmp_path / "account")
    return found


@dataclass
class _Timeline:
    """The launcher of a hung driver, and the times at which something happened to it, in seconds."""

    launcher: ClusterLauncher
    clock: _Clock
    hung: _Hung
    stops: list[float] = field(default_factory=list)
    submits: list[float] = field(default_factory=list)

    def run(self, look: Callable[[], object], *, until_s: float, every_s: float) -> None:
        """Calls ``look`` again and again, until a new driver was submitted."""
        for second in range(0, int(until_s), int(every_s)):
            was_alive = self.hung.is_alive
            self.clock.now = _NOW + timedelta(seconds=second)
            look()
            if was_alive and not self.hung.is_alive:
                self.stops.append(second)
            if self.submits:
                return


@pytest.fixture
def timeline(lake: Lake, hung: _Hung) -> _Timeline:
    clock = _Clock()

    def submit(job: str) -> None:
        hung.submit(job)
        found.submits.append((clock.now - _NOW).total_seconds())

    found = _Timeline(ClusterLauncher(hung.cluster, lake, submit, _PATIENCE, clock), clock, hung)
    return found


def test_a_driver_that_hangs_is_killed_after_its_patience_and_started_again(lake: Lake, timeline: _Timeline) -> None:
    want(lake, _JOB, WantedState.RUNNING, "a test", _NOW)
    _report(lake, "attribute", 7, _NOW)
    memory = Memory()

    def look() -> None:
        nonlocal memory
        memory = supervise_once(lake, timeline.launcher, _JOB, memory, Limits(), timeline.clock.now, name="test").memory

    timeline.run(look, until_s=3600, every_s=10)
    assert timeline.stops == [980], "it was silent for more than 600 s, and took more than 360 s to stop"
    assert timeline.submits == [1000], "after the pause before a restart"
    assert stop_requested_at(lake, _JOB) is None


@pytest.mark.parametrize(
    ("state", "submits"),
    [
        pytest.param(WantedState.RUNNING, 1, id="wanted"),
        pytest.param(WantedState.STOPPED, 0, id="not-wanted"),
    ],
)
def test_a_driver_that_hangs_while_stopping_is_killed_by_the_reconciler_too(
    lake: Lake, timeline: _Timeline, monkeypatch: pytest.MonkeyPatch, state: WantedState, submits: int
) -> None:
    """Its watcher asked it to stop and died."""
    place = Place(str(lake.path), None, Settings(), lake, timeline.launcher)
    want(lake, _JOB, state, "a test", _NOW)
    request_stop(lake, _JOB, _NOW)
    monkeypatch.setattr(reconcile, "find_place", lambda: place)
    monkeypatch.setattr(reconcile, "utc_now", timeline.clock)
    timeline.run(reconcile.find_unwatched, until_s=1800, every_s=180)
    assert timeline.stops == [540], "the first round after its patience of 360 s"
    assert timeline.submits == [720][:submits]


def test_a_pause_outlasts_a_driver_that_hangs(lake: Lake, timeline: _Timeline, monkeypatch: pytest.MonkeyPatch) -> None:
    """A deployment need not fail because the old driver hangs."""
    place = Place(str(lake.path), None, Settings(), lake, timeline.launcher)
    want(lake, _JOB, WantedState.RUNNING, "a test", _NOW)

    def sleep(_seconds: float) -> None:
        timeline.clock.now += timedelta(seconds=60)

    def monotonic() -> float:
        return timeline.clock.now.timestamp()

    monkeypatch.setattr(job_control, "time", SimpleNamespace(sleep=sleep, monotonic=monotonic))
    with job_control.paused(place, _JOB, "a deployment"):
        assert not timeline.hung.is_alive


# What goes wrong.


def test_an_error_is_reported_without_the_token(rest: _Rest, tmp_path: Path) -> None:
    cluster = _kubernetes(rest, tmp_path / "account")
    rest.answers[f"GET {_POD}"] = 403
    with pytest.raises(LauncherError, match=rf"Kubernetes at {rest.address} answers GET {_POD} with 403") as refused:
        cluster.inspect(_JOB)
    assert "canary" not in f"{refused.value!r} {cluster._rest!r}"
    rest.answers[f"GET {_POD}"] = "<html>"
    with pytest.raises(LauncherError, match="with no JSON"):
        cluster.inspect(_JOB)


def test_a_cluster_that_does_not_answer_is_named() -> None:
    with pytest.raises(LauncherError, match=r"YARN.s ResourceManager at http://127\.0\.0\.1:1 does not answer"):
        YarnCluster("http://127.0.0.1:1", _ROOT, "ads").inspect(_JOB)


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
        find_place(environment)


@pytest.mark.parametrize(
    "environment",
    [
        {"ADLOOM_CLUSTER": "yarn", "ADLOOM_YARN_ADDRESS": "http://127.0.0.1:1"},
        {"ADLOOM_CLUSTER": "k8s://https://127.0.0.1:1", "ADLOOM_KUBERNETES_NAMESPACE": "ads"},
    ],
)
def test_the_cluster_that_is_named_is_used(environment: dict[str, str], tmp_path: Path) -> None:
    assert isinstance(find_place({"ADLOOM_LAKE": str(tmp_path), **environment}).launcher, ClusterLauncher)
