"""The tasks that care for a lake by a command of adloom."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from airflow.sdk.exceptions import AirflowFailException

from ad_dags.commands import CommandError
from ad_dags.connection import lake_connection
from ad_dags.connection.lake_connection import LakeConnection
from ad_dags.dags import maintain_tables
from ad_dags.dags.balance_ledger import balance_ledger
from ad_dags.dags.mark_invalid import mark_invalid
from ad_dags.drivers.launchers import DriverState
from spark_jobs.config.settings import Settings
from spark_jobs.lake.open import open_lake
from spark_jobs.places import CHECKPOINTS
from spark_jobs.streams.desired_state import RunState, read_desired, set_desired
from tests.dags.fakes import LAKE, RecordingLauncher, fake_command

_NOW = datetime.now(UTC)


@pytest.fixture
def connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LakeConnection:
    lake = open_lake(str(tmp_path / "lake"))
    lake.files.write(f"{CHECKPOINTS}/attribute/sessionize/v1.json", b"{}")
    connection = LakeConnection(str(tmp_path / "lake"), None, Settings(), lake, RecordingLauncher(DriverState.RUNNING))
    monkeypatch.setattr(lake_connection, "connect", lambda *_: connection)
    return connection


def test_tables_are_maintained_while_all_jobs_run(connection: LakeConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    set_desired(connection.lake, "attribute", RunState.RUNNING, "a test", _NOW)
    before = read_desired(connection.lake, "attribute")
    fake_command(connection.lake.path.parent, monkeypatch, 'echo "$@"')
    assert maintain_tables.maintain_tables(LAKE).startswith("maintain --lake")
    assert isinstance(connection.launcher, RecordingLauncher)
    assert connection.launcher.calls == []
    assert read_desired(connection.lake, "attribute") == before


def test_invalid_traffic_is_marked_with_the_keys_of_maintenance(
    connection: LakeConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADLOOM_MAINTENANCE_PROFILE", "maintenance")
    fake_command(connection.lake.path.parent, monkeypatch, 'echo "$1 $2 by ${ADLOOM_S3__PROFILE}"')
    assert mark_invalid(LAKE).startswith("marks update by maintenance")


def test_a_ledger_that_does_not_balance_fails_without_a_retry(
    connection: LakeConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_command(connection.lake.path.parent, monkeypatch, 'echo "balances to the row: $1"')
    assert balance_ledger(LAKE).startswith("balances to the row: ledger")
    fake_command(connection.lake.path.parent, monkeypatch, "echo DOES NOT BALANCE: 1 unaccounted '(records)'; exit 1")
    with pytest.raises(AirflowFailException, match="1 unaccounted"):
        balance_ledger(LAKE)
    fake_command(connection.lake.path.parent, monkeypatch, "echo error: the store does not answer; exit 1")
    with pytest.raises(CommandError, match="does not answer"):
        balance_ledger(LAKE)
