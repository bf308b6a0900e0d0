"""Table maintenance: the job is paused meanwhile, and resumed however it ends."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from airflow.sdk.exceptions import AirflowFailException

from ad_dags.launchers import DriverState
from ad_dags.place import Place
from ad_dags.programs import CommandError
from ad_dags.tasks import maintenance
from spark_jobs.contracts.places import CHECKPOINTS
from spark_jobs.contracts.settings import Settings
from spark_jobs.contracts.wanted import WantedState
from spark_jobs.runtime.lakes import open_lake
from spark_jobs.runtime.wanted import read_wanted, want
from tests.dags.fakes import LAKE, RecordingLauncher, fake_command

_NOW = datetime.now(UTC)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    lake = open_lake(str(tmp_path / "lake"))
    lake.files.write(f"{CHECKPOINTS}/attribute/sessionize/v1.json", b"{}")
    place = Place(str(tmp_path / "lake"), None, Settings(), lake, RecordingLauncher(DriverState.RUNNING))
    monkeypatch.setattr(maintenance, "find_place", lambda *_: place)
    return place


def _state(place: Place) -> tuple[str, bool]:
    wanted = read_wanted(place.lake, "attribute")
    assert wanted
    return wanted.state.value, wanted.is_paused


def test_the_job_is_paused_while_its_tables_are_maintained(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    want(place.lake, "attribute", WantedState.RUNNING, "a test", _NOW)
    wanted = place.lake.path / "_progress" / "attribute" / "wanted.json"
    fake_command(place.lake.path.parent, monkeypatch, f'echo "$@"; cat {wanted}')
    output = maintenance.maintain_tables(LAKE, "attribute")
    assert output.startswith("maintain attributions sessions --lake")
    assert '"state": "stopped"' in output
    assert isinstance(place.launcher, RecordingLauncher)
    assert place.launcher.calls == ["stop attribute"], "its watcher starts it again"
    assert _state(place) == ("running", False)


def test_tables_that_no_job_writes_are_maintained_while_all_jobs_run(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_command(place.lake.path.parent, monkeypatch, 'echo "$@"')
    tables = "paths credits net_paths net_credits marks late_events restatements days"
    assert maintenance.maintain_derived(LAKE).startswith(f"maintain {tables} --lake")
    assert isinstance(place.launcher, RecordingLauncher)
    assert place.launcher.calls == []


def test_a_maintenance_that_fails_resumes_the_job(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    want(place.lake, "attribute", WantedState.RUNNING, "a test", _NOW)
    fake_command(place.lake.path.parent, monkeypatch, "echo error: the disk is full; exit 1")
    with pytest.raises(CommandError, match="the disk is full"):
        maintenance.maintain_tables(LAKE, "attribute")
    assert _state(place) == ("running", False)


def test_a_job_that_was_stopped_on_purpose_stays_stopped(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    want(place.lake, "attribute", WantedState.STOPPED, "a test", _NOW)
    fake_command(place.lake.path.parent, monkeypatch, "exit 0")
    maintenance.maintain_tables(LAKE, "attribute")
    assert isinstance(place.launcher, RecordingLauncher)
    assert place.launcher.calls == []
    assert _state(place) == ("stopped", False)


def test_a_job_that_is_stopped_during_its_pause_stays_stopped(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    want(place.lake, "attribute", WantedState.RUNNING, "a test", _NOW)

    def run_adloom(*_: object, **__: object) -> tuple[int, str]:
        want(place.lake, "attribute", WantedState.STOPPED, "an operator", _NOW)
        return 0, ""

    monkeypatch.setattr(maintenance, "run_adloom", run_adloom)
    maintenance.maintain_tables(LAKE, "attribute")
    assert _state(place) == ("stopped", False)


def test_invalid_traffic_is_marked_with_the_keys_of_care(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADLOOM_CARE_PROFILE", "care")
    fake_command(place.lake.path.parent, monkeypatch, 'echo "$1 $2 by ${ADLOOM_S3__PROFILE}"')
    assert maintenance.mark_invalid(LAKE).startswith("marks update by care")


def test_a_ledger_that_does_not_balance_fails_without_a_retry(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_command(place.lake.path.parent, monkeypatch, 'echo "balances to the row: $1"')
    assert maintenance.balance_ledger(LAKE).startswith("balances to the row: ledger")
    fake_command(place.lake.path.parent, monkeypatch, "echo DOES NOT BALANCE: 1 unaccounted '(records)'; exit 1")
    with pytest.raises(AirflowFailException, match="1 unaccounted"):
        maintenance.balance_ledger(LAKE)
    fake_command(place.lake.path.parent, monkeypatch, "echo error: the store does not answer; exit 1")
    with pytest.raises(CommandError, match="does not answer"):
        maintenance.balance_ledger(LAKE)
