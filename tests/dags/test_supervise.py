"""Supervising a driver, on a real lake and with a launcher that only records its calls."""

import asyncio
import json
import threading
import time
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, TaskDeferred
from airflow.triggers.base import TriggerEvent

from ad_dags.connection.lake_connection import LakeConnection, connect
from ad_dags.dags import reconcile_drivers as reconcile
from ad_dags.drivers.job_control import stop_marked
from ad_dags.drivers.launchers import DriverState
from ad_dags.drivers.operators import supervise as supervise_operator
from ad_dags.drivers.operators.supervise import SuperviseDriverOperator
from ad_dags.drivers.supervision.rules import Action, Decision, Limits
from ad_dags.drivers.supervision.watch import supervise_once
from ad_dags.drivers.triggers import supervise as supervise_trigger
from ad_dags.drivers.triggers.supervise import SuperviseDriverTrigger
from spark_jobs.config.settings import Settings
from spark_jobs.errors import LakeError, SettingsError
from spark_jobs.lake.open import open_lake
from spark_jobs.queries.places import progress_key
from spark_jobs.streams.desired_state import (
    RunState,
    Watch,
    desired_key,
    is_watched,
    read_desired,
    read_watch,
    set_desired,
    write_watch,
)
from tests.dags.fakes import LAKE, RecordingLauncher

_JOB = "attribute"
_NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
_LIMITS = {"most_restarts": 1.0, "first_pause_s": 0.0}


@pytest.fixture
def launcher() -> RecordingLauncher:
    return RecordingLauncher()


@pytest.fixture
def connection(tmp_path: Path, launcher: RecordingLauncher, monkeypatch: pytest.MonkeyPatch) -> LakeConnection:
    """The place that the trigger finds."""
    lake = open_lake(str(tmp_path / "lake"))
    found = LakeConnection(str(tmp_path / "lake"), None, Settings(), lake, launcher)
    monkeypatch.setattr(supervise_trigger, "connect", lambda *_: found)
    return found


def _look(connection: LakeConnection, now: datetime) -> Decision:
    return supervise_once(connection.lake, connection.launcher, _JOB, Limits(), now, name="test")


def test_a_job_that_nobody_ever_wanted_is_left_alone(connection: LakeConnection, launcher: RecordingLauncher) -> None:
    assert _look(connection, _NOON).action is Action.FINISH
    assert launcher.calls == []


def test_a_wanted_job_is_started_and_its_watcher_is_recorded(
    connection: LakeConnection, launcher: RecordingLauncher
) -> None:
    set_desired(connection.lake, _JOB, RunState.RUNNING, "a test", _NOON)
    assert not is_watched(connection.lake, _JOB, _NOON, patience=timedelta(minutes=1))
    assert _look(connection, _NOON).action is Action.START
    assert launcher.calls == ["start attribute"]
    assert is_watched(connection.lake, _JOB, _NOON + timedelta(minutes=1), patience=timedelta(minutes=1))
    assert not is_watched(connection.lake, _JOB, _NOON + timedelta(seconds=61), patience=timedelta(minutes=1))


def test_a_pause_that_nobody_ends_ends_by_itself(connection: LakeConnection, launcher: RecordingLauncher) -> None:
    until = _NOON + timedelta(minutes=10)
    set_desired(connection.lake, _JOB, RunState.STOPPED, "tables are compacted", _NOON, until=until)
    found = _look(connection, until - timedelta(seconds=1))
    assert (found.action, found.why) == (Action.NOTHING, "it is paused: tables are compacted")
    assert _look(connection, until).action is Action.START
    assert launcher.calls == ["start attribute"]
    wanted = read_desired(connection.lake, _JOB)
    assert wanted
    assert wanted.state is RunState.RUNNING
    assert wanted.why == "its pause is over (tables are compacted)"


def test_a_launcher_that_is_away_is_waited_for(connection: LakeConnection, launcher: RecordingLauncher) -> None:
    set_desired(connection.lake, _JOB, RunState.RUNNING, "a test", _NOON)
    launcher.is_away = True
    remembered = Watch(name="another", looked_at=_NOON - timedelta(minutes=1), restarts=3)
    write_watch(connection.lake, _JOB, remembered)
    assert _look(connection, _NOON).action is Action.NOTHING
    now = read_watch(connection.lake, _JOB)
    assert now
    assert (now.name, now.looked_at, now.restarts) == ("test", _NOON, 3)


def test_a_damaged_record_of_what_is_wanted_is_an_error(
    connection: LakeConnection, launcher: RecordingLauncher
) -> None:
    connection.lake.files.write(desired_key(_JOB), b'{"state": "sideways"}')
    with pytest.raises(LakeError, match="is damaged"):
        _look(connection, _NOON)
    assert launcher.calls == []


@pytest.mark.parametrize(
    ("wanted_at", "state"),
    [
        pytest.param(_NOON - timedelta(minutes=1), RunState.STOPPED, id="marked"),
        pytest.param(_NOON + timedelta(seconds=1), RunState.RUNNING, id="cleared"),
    ],
)
def test_a_stop_does_not_undo_a_later_start(
    connection: LakeConnection, launcher: RecordingLauncher, wanted_at: datetime, state: RunState
) -> None:
    set_desired(connection.lake, _JOB, RunState.RUNNING, "its task", wanted_at)
    stop_marked(connection.lake, launcher, _JOB, _NOON + timedelta(seconds=2), _NOON)
    assert launcher.calls == ["stop attribute"]
    wanted = read_desired(connection.lake, _JOB)
    assert wanted
    assert wanted.state is state


def _event(trigger: SuperviseDriverTrigger) -> TriggerEvent:
    async def first() -> TriggerEvent:
        return await asyncio.wait_for(anext(aiter(trigger.run())), 30)

    return asyncio.run(first())


def test_the_trigger_ends_when_the_job_is_no_longer_wanted(
    connection: LakeConnection, launcher: RecordingLauncher
) -> None:
    set_desired(connection.lake, _JOB, RunState.STOPPED, "a test", _NOON)
    launcher.state = DriverState.RUNNING
    event = _event(SuperviseDriverTrigger(_JOB, _LIMITS, 0.01))
    assert event.payload == {"action": "finish", "why": "it is no longer wanted, and has stopped"}
    assert launcher.calls == ["stop attribute"]


def test_the_trigger_ends_when_restarts_do_not_help(connection: LakeConnection, launcher: RecordingLauncher) -> None:
    set_desired(connection.lake, _JOB, RunState.RUNNING, "a test", _NOON)
    launcher.is_broken = True
    event = _event(SuperviseDriverTrigger(_JOB, _LIMITS, 0.01))
    assert event.payload["action"] == "fail"
    assert "the reason" in event.payload["why"]
    operator = SuperviseDriverOperator(lake=LAKE, task_id="supervise", job=_JOB)
    with pytest.raises(AirflowFailException, match="job attribute: it has ended again after 1 restarts in a row"):
        operator.watch_is_over({}, event.payload)
    wanted = read_desired(connection.lake, _JOB)
    assert wanted
    assert wanted.state is RunState.FAILED


def test_a_killed_trigger_stops_the_driver(connection: LakeConnection, launcher: RecordingLauncher) -> None:
    set_desired(connection.lake, _JOB, RunState.RUNNING, "a test", _NOON)
    asyncio.run(SuperviseDriverTrigger(_JOB, _LIMITS, 0.01).on_kill())
    assert launcher.calls == ["stop attribute"]
    wanted = read_desired(connection.lake, _JOB)
    assert wanted
    assert wanted.state is RunState.STOPPED


def test_a_killed_trigger_that_is_cancelled_half_way_still_stops_the_driver(
    connection: LakeConnection, launcher: RecordingLauncher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Airflow cancels it if it takes longer than a moment."""
    set_desired(connection.lake, _JOB, RunState.RUNNING, "a test", _NOON)
    is_looking = threading.Event()

    def find_slowly(_lake: object) -> LakeConnection:
        is_looking.set()
        time.sleep(0.3)
        return connection

    monkeypatch.setattr(supervise_trigger, "connect", find_slowly)

    async def kill_and_cancel() -> None:
        killing = asyncio.create_task(SuperviseDriverTrigger(_JOB, _LIMITS, 0.01).on_kill())
        await asyncio.to_thread(is_looking.wait, 10)
        killing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await killing

    asyncio.run(kill_and_cancel())
    assert launcher.calls == ["stop attribute"]


def test_a_trigger_is_recreated_from_its_serialized_form() -> None:
    trigger = SuperviseDriverTrigger(_JOB, Limits().numbers(), 5.0, "adloom_eu")
    path, kwargs = trigger.serialize()
    assert path == "ad_dags.drivers.triggers.supervise.SuperviseDriverTrigger"
    assert SuperviseDriverTrigger(**kwargs).serialize() == (path, kwargs)


_LIMITS_STORED = '{"stall_after_s": 600.0, "most_restarts": 5, "within_s": 1800.0, "first_pause_s": 5.0}'


@pytest.mark.parametrize(
    ("path", "arguments"),
    [
        pytest.param(
            "ad_dags.triggers.supervise.SuperviseDriverTrigger",
            f'{{"job": "attribute", "limits": {_LIMITS_STORED}, "poll_s": 5.0, "connection": ""}}',
            id="before 0.1.0",
        ),
        pytest.param(
            "ad_dags.drivers.triggers.supervise.SuperviseDriverTrigger",
            f'{{"job": "attribute", "limits": {_LIMITS_STORED}, "poll_s": 5.0, "connection": ""}}',
            id="0.1.0",
        ),
        pytest.param(
            "ad_dags.triggers.new_versions.NewVersionsTrigger",
            '{"pause_s": 900.0, "poll_s": 30.0, "connection": ""}',
            id="new versions, before 0.1.0",
        ),
        pytest.param(
            "ad_dags.drivers.triggers.new_versions.NewVersionsTrigger",
            '{"pause_s": 900.0, "poll_s": 30.0, "connection": ""}',
            id="new versions, 0.1.0",
        ),
    ],
)
def test_a_trigger_that_an_earlier_version_has_stored_goes_on_after_an_upgrade(path: str, arguments: str) -> None:
    module, _, name = path.rpartition(".")
    trigger = getattr(import_module(module), name)(**json.loads(arguments))
    _, kwargs = trigger.serialize()
    stored = json.loads(arguments)
    assert {name: kwargs[name] for name in stored} == stored


def test_damaged_progress_does_not_end_the_watch(connection: LakeConnection, launcher: RecordingLauncher) -> None:
    set_desired(connection.lake, _JOB, RunState.RUNNING, "a test", _NOON)
    launcher.state = DriverState.RUNNING
    connection.lake.files.write(progress_key(_JOB), b"{")
    assert _look(connection, _NOON).action is Action.NOTHING


def test_a_place_names_what_is_missing() -> None:
    with pytest.raises(SettingsError, match="ADLOOM_SUPERVISOR_PASSWORD not set"):
        connect(LAKE, {"ADLOOM_LAKE": "lake", "ADLOOM_SUPERVISOR_ADDRESS": "127.0.0.1:1"})


def test_a_place_does_not_show_the_password(tmp_path: Path) -> None:
    environment = {
        "ADLOOM_LAKE": str(tmp_path),
        "ADLOOM_SUPERVISOR_ADDRESS": "127.0.0.1:1",
        "ADLOOM_SUPERVISOR_PASSWORD": "hush",
    }
    assert "hush" not in repr(connect(LAKE, environment))


def _reconcile(connection: LakeConnection, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(reconcile, "connect", lambda *_: connection)
    return reconcile.find_unwatched(LAKE, Limits())


def test_a_wanted_job_that_nobody_watches_is_started_and_watched(
    connection: LakeConnection, launcher: RecordingLauncher, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_desired(connection.lake, _JOB, RunState.RUNNING, "a test", _NOON)
    assert _reconcile(connection, monkeypatch) == ["supervise_attribute"]
    assert launcher.calls == ["start attribute"]


def test_a_job_that_is_watched_is_left_to_its_watcher(
    connection: LakeConnection, launcher: RecordingLauncher, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_desired(connection.lake, _JOB, RunState.RUNNING, "a test", _NOON)
    write_watch(connection.lake, _JOB, Watch(name="somebody", looked_at=datetime.now(UTC)))
    assert _reconcile(connection, monkeypatch) == []
    assert launcher.calls == []


@pytest.mark.parametrize(
    ("state", "calls"),
    [(DriverState.RUNNING, ["stop attribute"]), (DriverState.STOPPING, ["stop attribute"]), (DriverState.STOPPED, [])],
)
def test_a_driver_of_a_job_that_was_stopped_on_purpose_is_stopped(
    connection: LakeConnection,
    launcher: RecordingLauncher,
    monkeypatch: pytest.MonkeyPatch,
    state: DriverState,
    calls: list[str],
) -> None:
    set_desired(connection.lake, _JOB, RunState.STOPPED, "a test", _NOON)
    launcher.state = state
    assert _reconcile(connection, monkeypatch) == []
    assert launcher.calls == calls


def test_a_job_that_has_failed_is_left_alone(
    connection: LakeConnection, launcher: RecordingLauncher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, it was started anew every few minutes, all night."""
    set_desired(connection.lake, _JOB, RunState.FAILED, "it has ended again", _NOON)
    launcher.state = DriverState.FAILED
    assert _reconcile(connection, monkeypatch) == []
    assert launcher.calls == []


@pytest.mark.parametrize(
    ("before", "is_marked", "triggered_s", "try_number", "starts"),
    [
        pytest.param(RunState.STOPPED, False, -1, 1, False, id="stopped, triggered before and queued since"),
        pytest.param(RunState.FAILED, False, -1, 1, False, id="failed, triggered before and queued since"),
        pytest.param(RunState.STOPPED, True, -1, 1, False, id="marked, triggered before and queued since"),
        pytest.param(RunState.STOPPED, False, -1, 2, False, id="stopped, cleared at some time"),
        pytest.param(RunState.STOPPED, True, -1, 2, True, id="marked, cleared"),
        pytest.param(RunState.FAILED, False, -1, 2, True, id="failed, cleared"),
        pytest.param(RunState.STOPPED, False, 1, 1, True, id="stopped, triggered after"),
        pytest.param(RunState.FAILED, False, 1, 1, True, id="failed, triggered after"),
    ],
)
def test_only_who_asks_for_it_later_starts_what_was_stopped(
    connection: LakeConnection,
    monkeypatch: pytest.MonkeyPatch,
    before: RunState,
    triggered_s: int,
    try_number: int,
    *,
    is_marked: bool,
    starts: bool,
) -> None:
    """Runs that were queued while the triggerer was away started the job again, weeks after somebody had stopped it."""
    set_desired(connection.lake, _JOB, before, "a person", _NOON, is_marked=is_marked)
    monkeypatch.setattr(supervise_operator, "connect", lambda *_: connection)
    operator = SuperviseDriverOperator(lake=LAKE, task_id="supervise", job=_JOB)
    run = SimpleNamespace(run_after=_NOON + timedelta(seconds=triggered_s))
    context: Any = {"ti": SimpleNamespace(try_number=try_number), "dag_run": run}
    with pytest.raises(TaskDeferred) if starts else nullcontext():
        assert "a person" in operator.execute(context)
    wanted = read_desired(connection.lake, _JOB)
    assert wanted
    assert wanted.state is (RunState.RUNNING if starts else before)


@pytest.mark.parametrize("runs", [0, 1])
def test_a_supervising_dag_is_not_triggered_while_a_run_of_it_waits(
    connection: LakeConnection, monkeypatch: pytest.MonkeyPatch, runs: int
) -> None:
    set_desired(connection.lake, _JOB, RunState.RUNNING, "a test", _NOON)
    monkeypatch.setattr(reconcile, "connect", lambda *_: connection)
    asked: list[tuple[str, list[str]]] = []

    def count(dag_id: str, states: list[str]) -> int:
        asked.append((dag_id, states))
        return runs

    monkeypatch.setattr(reconcile, "get_current_context", lambda: {"ti": SimpleNamespace(get_dr_count=count)})
    assert reconcile.find_dags_to_trigger(LAKE, Limits().numbers()) == ["supervise_attribute"][runs:]
    assert asked == [("supervise_attribute", ["running", "queued"])]


def test_a_job_that_nobody_ever_asked_for_is_left_alone(
    connection: LakeConnection, launcher: RecordingLauncher, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher.state = DriverState.RUNNING
    assert _reconcile(connection, monkeypatch) == []
    assert launcher.calls == []
