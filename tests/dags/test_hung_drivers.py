"""A cluster driver that hangs: it neither reports nor stops when it is asked to. It is killed, and started again."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Protocol

import pytest

from ad_dags.connection.lake_connection import LakeConnection
from ad_dags.dags import reconcile_drivers as reconcile
from ad_dags.drivers import job_control
from ad_dags.drivers.launchers.cluster import Cluster, ClusterLauncher
from ad_dags.drivers.launchers.yarn import YarnCluster
from ad_dags.drivers.supervision.rules import Limits
from ad_dags.drivers.supervision.watch import supervise_once
from spark_jobs.config.settings import Settings
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from spark_jobs.streams.desired_state import RunState, request_stop, set_desired, stop_requested_at
from tests.dags.fake_clusters import (
    APPS,
    JOB,
    NOW,
    POD,
    ROOT,
    Clock,
    FakeRest,
    app,
    kubernetes,
    pod,
    serve,
    write_report,
)
from tests.dags.fakes import LAKE

_PATIENCE = timedelta(minutes=6)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return open_lake(str(tmp_path / "lake"))


@pytest.fixture
def rest() -> Iterator[FakeRest]:
    with serve() as fake:
        yield fake


class _Hung(Protocol):
    """A cluster behind its REST interface, with a driver of the job that neither reports nor heeds requests."""

    cluster: Cluster
    is_alive: bool

    def submit(self, job: str) -> None:
        """A new driver takes the place of the one that was killed."""


class _HungOnYarn:
    def __init__(self, rest: FakeRest, _folder: Path) -> None:
        self._rest, self.cluster = rest, YarnCluster(rest.address, ROOT, "ads")
        self.is_alive, self._number = True, 0
        self.submit(JOB)
        rest.on_request = self._on_request

    def submit(self, _job: str) -> None:
        self.is_alive, self._number = True, self._number + 1
        self._show("RUNNING")

    def _show(self, state: str) -> None:
        final = "KILLED" if state == "KILLED" else "UNDEFINED"
        newest = app(state, final, started=1_000 * self._number, number=self._number)
        self._rest.answers[f"GET {APPS}"] = {"apps": {"app": [newest]}}
        self._rest.answers[f"PUT {APPS}/{newest['id']}/state"] = {"state": state}

    def _on_request(self, request: str) -> None:
        if request.startswith("PUT"):
            self.is_alive = False
            self._show("KILLED")


class _HungOnKubernetes:
    def __init__(self, rest: FakeRest, folder: Path) -> None:
        self._rest, self.cluster = rest, kubernetes(rest, folder)
        self.submit(JOB)
        rest.on_request = self._on_request

    def submit(self, _job: str) -> None:
        self.is_alive = True
        self._rest.answers |= {f"GET {POD}": pod("Running"), f"DELETE {POD}": pod("Running")}

    def _on_request(self, request: str) -> None:
        if request.startswith("DELETE"):
            self.is_alive = False
            self._rest.answers[f"GET {POD}"] = 404


@pytest.fixture(params=[_HungOnYarn, _HungOnKubernetes], ids=["yarn", "kubernetes"])
def hung(request: pytest.FixtureRequest, rest: FakeRest, tmp_path: Path) -> _Hung:
    found: _Hung = request.param(rest, tmp_path / "account")
    return found


@dataclass
class _Timeline:
    """The launcher of a hung driver, and the times at which something happened to it, in seconds."""

    launcher: ClusterLauncher
    clock: Clock
    hung: _Hung
    stops: list[float] = field(default_factory=list)
    submits: list[float] = field(default_factory=list)

    def run(self, look: Callable[[], object], *, until_s: float, every_s: float) -> None:
        """Calls ``look`` again and again, until a new driver was submitted."""
        for second in range(0, int(until_s), int(every_s)):
            was_alive = self.hung.is_alive
            self.clock.now = NOW + timedelta(seconds=second)
            look()
            if was_alive and not self.hung.is_alive:
                self.stops.append(second)
            if self.submits:
                return


@pytest.fixture
def timeline(lake: Lake, hung: _Hung) -> _Timeline:
    clock = Clock()

    def submit(job: str) -> None:
        hung.submit(job)
        found.submits.append((clock.now - NOW).total_seconds())

    found = _Timeline(ClusterLauncher(hung.cluster, lake, submit, _PATIENCE, clock), clock, hung)
    return found


def test_a_driver_that_hangs_is_killed_after_its_patience_and_started_again(lake: Lake, timeline: _Timeline) -> None:
    set_desired(lake, JOB, RunState.RUNNING, "a test", NOW)
    write_report(lake, "attribute", 7, NOW)
    timeline.run(
        lambda: supervise_once(lake, timeline.launcher, JOB, Limits(), timeline.clock.now, name="test"),
        until_s=3600,
        every_s=10,
    )
    assert timeline.stops == [980], "it was silent for more than 600 s, and took more than 360 s to stop"
    assert timeline.submits == [990], "the first restart of a driver that nobody has restarted yet"
    assert stop_requested_at(lake, JOB) is None


@pytest.mark.parametrize(
    ("state", "submits"),
    [
        pytest.param(RunState.RUNNING, 1, id="wanted"),
        pytest.param(RunState.STOPPED, 0, id="not-wanted"),
    ],
)
def test_a_driver_that_hangs_while_stopping_is_killed_by_the_reconciler_too(
    lake: Lake, timeline: _Timeline, monkeypatch: pytest.MonkeyPatch, state: RunState, submits: int
) -> None:
    """Its watcher asked it to stop and died."""
    connection = LakeConnection(str(lake.path), None, Settings(), lake, timeline.launcher)
    set_desired(lake, JOB, state, "a test", NOW)
    request_stop(lake, JOB, NOW)
    monkeypatch.setattr(reconcile, "connect", lambda *_: connection)
    monkeypatch.setattr(reconcile, "utc_now", timeline.clock)
    timeline.run(lambda: reconcile.find_unwatched(LAKE, Limits()), until_s=1800, every_s=180)
    assert timeline.stops == [540], "the first round after its patience of 360 s"
    assert timeline.submits == [720][:submits]


def test_a_pause_outlasts_a_driver_that_hangs(lake: Lake, timeline: _Timeline, monkeypatch: pytest.MonkeyPatch) -> None:
    """A deployment need not fail because the old driver hangs."""
    connection = LakeConnection(str(lake.path), None, Settings(), lake, timeline.launcher)
    set_desired(lake, JOB, RunState.RUNNING, "a test", NOW)

    def sleep(_seconds: float) -> None:
        timeline.clock.now += timedelta(seconds=60)

    def monotonic() -> float:
        return timeline.clock.now.timestamp()

    monkeypatch.setattr(job_control, "time", SimpleNamespace(sleep=sleep, monotonic=monotonic))
    with job_control.paused(connection, JOB, "a deployment"):
        assert not timeline.hung.is_alive
