"""Deploying: on a real lake, with real releases and a launcher that only records its calls."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ad_dags.launchers import DriverState
from ad_dags.place import Place
from ad_dags.tasks import deploy as tasks
from ad_dags.tasks.deploy import DeployAction, DeployError, build, check, jobs_of, swap
from spark_jobs.contracts.errors import CheckpointError, LakeError, SettingsError
from spark_jobs.contracts.lake import progress_key
from spark_jobs.contracts.progress import QueryReport, QueryState
from spark_jobs.contracts.settings import Settings
from spark_jobs.runtime.lakes import open_lake
from spark_jobs.runtime.releases import publish, read_deployment
from spark_jobs.runtime.wanted import read_wanted
from tests.dags.fakes import RecordingLauncher

_OLD, _NEW = "1.0.0", "1.0.1"


class _Drivers(RecordingLauncher):
    """Drivers whose queries complete a batch as soon as they start, or fail, depending on the release."""

    place: Place
    bad_releases: tuple[str, ...] = ()

    def start(self, job: str) -> None:
        super().start(job)
        deployment = read_deployment(self.place.lake, job)
        assert deployment
        self.calls[-1] += f" {deployment.version}"
        now = datetime.now(UTC)
        is_bad = deployment.version in self.bad_releases
        report = QueryReport(
            job=job,
            query="ingest",
            version=deployment.version,
            process_id=1,
            started_at=now,
            updated_at=now + timedelta(seconds=1),
            state=QueryState.FAILED if is_bad else QueryState.RUNNING,
            last_error="out of luck" if is_bad else None,
        )
        self.place.lake.files.write(progress_key("ingest"), report.model_dump_json().encode())


@pytest.fixture
def drivers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> _Drivers:
    launcher = _Drivers()
    lake = open_lake(str(tmp_path / "lake"))
    launcher.place = Place(str(tmp_path / "lake"), None, Settings(), lake, launcher)
    monkeypatch.setattr(tasks, "find_place", lambda: launcher.place)
    monkeypatch.setattr(tasks, "_POLL_S", 0.01)
    for version in (_OLD, _NEW):
        wheel = tmp_path / f"adloom-{version}-py3-none-any.whl"
        wheel.write_bytes(version.encode())
        publish(lake, wheel, version, datetime.now(UTC))
    return launcher


def _form(action: DeployAction, **changed: Any) -> dict[str, Any]:
    return {"job": "deduplicate", "action": action.value, "release": _NEW, "confirm_reset": False, **changed}


def _preflight(changes: list[dict[str, str]]) -> Callable[..., tuple[int, str]]:
    return lambda *_, **__: (1, f"a warning\n{json.dumps(changes)}")


def test_upstream_jobs_are_started_first_and_stopped_last() -> None:
    assert jobs_of(_form(DeployAction.START, job="all")) == ["deduplicate", "attribute", "measure"]
    assert jobs_of(_form(DeployAction.STOP, job="all")) == ["measure", "attribute", "deduplicate"]
    assert jobs_of(_form(DeployAction.START, job="attribute")) == ["attribute"]


def test_all_starts_the_jobs_of_this_place_and_stops_whatever_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADLOOM_JOBS", "attribute, deduplicate")
    assert jobs_of(_form(DeployAction.START, job="all")) == ["deduplicate", "attribute"]
    assert jobs_of(_form(DeployAction.STOP, job="all")) == ["measure", "attribute", "deduplicate"]
    assert jobs_of(_form(DeployAction.START, job="measure")) == ["measure"]
    monkeypatch.setenv("ADLOOM_JOBS", "attribute,measures")
    with pytest.raises(SettingsError, match="ADLOOM_JOBS names 'measures'; there are deduplicate, attribute, measure"):
        jobs_of(_form(DeployAction.START, job="all"))


def test_a_release_that_does_not_exist_is_not_deployed(drivers: _Drivers) -> None:
    assert build(_form(DeployAction.START)) == _NEW
    with pytest.raises(LakeError, match="has no release"):
        build(_form(DeployAction.START, release="9.9.9"))
    assert build(_form(DeployAction.STOP, release="9.9.9")) == ""
    assert drivers.calls == []


def test_a_first_release_is_started(drivers: _Drivers) -> None:
    assert swap(_NEW, [], _form(DeployAction.START)) == ["deduplicate: release 1.0.1 is running"]
    assert drivers.calls[-1] == "start deduplicate 1.0.1"
    wanted = read_wanted(drivers.place.lake, "deduplicate")
    assert wanted
    assert (wanted.state, wanted.until) == ("running", None)


def test_a_running_release_is_left_alone_by_start_and_not_by_restart(drivers: _Drivers) -> None:
    swap(_NEW, [], _form(DeployAction.START))
    drivers.calls.clear()
    assert swap(_NEW, [], _form(DeployAction.START)) == ["deduplicate: release 1.0.1 is already running"]
    assert drivers.calls == []
    swap(_NEW, [], _form(DeployAction.RESTART))
    assert drivers.calls == ["stop deduplicate", "start deduplicate 1.0.1"]


def test_a_release_that_does_not_work_is_replaced_by_the_previous_one(drivers: _Drivers) -> None:
    swap(_OLD, [], _form(DeployAction.START))
    drivers.calls.clear()
    drivers.bad_releases = (_NEW,)
    why = r"release 1\.0\.1 does not work: query ingest failed: out of luck; release 1\.0\.0 was started again"
    with pytest.raises(DeployError, match=why):
        swap(_NEW, [], _form(DeployAction.RESTART))
    assert [call for call in drivers.calls if call.startswith("start")] == [
        "start deduplicate 1.0.1",
        "start deduplicate 1.0.0",
    ]
    assert drivers.state is DriverState.RUNNING
    deployment = read_deployment(drivers.place.lake, "deduplicate")
    assert deployment
    assert (deployment.version, deployment.previous) == (_OLD, None), "a rollback would lead to the bad release"


def test_a_first_release_that_does_not_work_is_stopped(drivers: _Drivers) -> None:
    drivers.is_broken = True
    with pytest.raises(DeployError, match=r"its driver is given up \(the reason\); there is no previous release"):
        swap(_NEW, [], _form(DeployAction.START))
    wanted = read_wanted(drivers.place.lake, "deduplicate")
    assert wanted
    assert wanted.state == "stopped"


def test_a_rollback_returns_to_the_previous_release(drivers: _Drivers) -> None:
    swap(_OLD, [], _form(DeployAction.START))
    with pytest.raises(LakeError, match="no release to go back to"):
        swap("", [], _form(DeployAction.ROLLBACK))
    swap(_NEW, [], _form(DeployAction.RESTART))
    assert swap("", [], _form(DeployAction.ROLLBACK)) == ["deduplicate: release 1.0.0 is running"]
    assert drivers.calls[-1] == "start deduplicate 1.0.0"


def test_a_stop_is_remembered(drivers: _Drivers) -> None:
    swap(_NEW, [], _form(DeployAction.START))
    assert swap("", [], _form(DeployAction.STOP)) == ["deduplicate: stopped"]
    wanted = read_wanted(drivers.place.lake, "deduplicate")
    assert wanted
    assert (wanted.state, wanted.until) == ("stopped", None)


def test_checkpoints_that_a_release_cannot_use_fail_the_run_before_anything_is_stopped(
    drivers: _Drivers, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = {"query": "deduplicate", "setting": "deduplicate.mode", "before": "forever", "now": "within_watermark"}
    others = {"query": "sessionize", "setting": "sessionize.gap", "before": "5min", "now": "9min"}
    changes = [{**change, "verdict": "breaking", "why": "so"}, {**others, "verdict": "breaking", "why": "so"}]
    monkeypatch.setattr(tasks, "run_adloom", _preflight(changes))
    monkeypatch.setattr(tasks, "_code", lambda *_: Path())
    why = r"deduplicate\.mode was forever, is within_watermark\. Nothing was stopped"
    with pytest.raises(CheckpointError, match=why):
        check(_NEW, _form(DeployAction.RESTART))
    assert drivers.calls == []
    assert check(_NEW, _form(DeployAction.RESTART, confirm_reset=True)) == ["deduplicate"]
    assert check(_NEW, _form(DeployAction.RESTART, confirm_reset=True, job="all")) == ["deduplicate", "sessionize"]
    monkeypatch.setattr(tasks, "run_adloom", _preflight([]))
    assert check(_NEW, _form(DeployAction.RESTART)) == []


def test_confirmed_resets_are_done_between_the_old_driver_and_the_new_one(
    drivers: _Drivers, monkeypatch: pytest.MonkeyPatch
) -> None:
    swap(_OLD, [], _form(DeployAction.START))
    drivers.calls.clear()
    monkeypatch.setattr(tasks, "run_adloom", lambda _, command, **__: drivers.calls.append(" ".join(command)))
    monkeypatch.setattr(tasks, "_code", lambda *_: Path())
    swap(_NEW, ["deduplicate", "sessionize"], _form(DeployAction.RESTART))
    assert drivers.calls == ["stop deduplicate", "checkpoints reset deduplicate", "start deduplicate 1.0.1"]
