"""Backups from Airflow: to the place that the connection or the environment names, or skipped."""

from dataclasses import replace
from pathlib import Path

import pytest
from airflow.sdk.exceptions import AirflowSkipException

from ad_dags.commands import CommandError
from ad_dags.connection import lake_connection
from ad_dags.connection.lake_connection import LakeConnection
from ad_dags.dags.back_up_lake import back_up_lake
from spark_jobs.config.settings import Settings
from spark_jobs.lake.open import open_lake
from spark_jobs.places import CHECKPOINTS
from tests.dags.fakes import LAKE, RecordingLauncher, fake_command


@pytest.fixture
def connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LakeConnection:
    """A lake of the environment, and a command that prints its words and the profile of its keys."""
    lake = open_lake(str(tmp_path / "lake"))
    lake.files.write(f"{CHECKPOINTS}/attribute/attribute/v1.json", b"{}")
    connection = LakeConnection(str(lake.path), None, Settings(), lake, RecordingLauncher())
    monkeypatch.setattr(lake_connection, "connect", lambda _lake: connection)
    monkeypatch.delenv("ADLOOM_BACKUP", raising=False)
    fake_command(connection.lake.path.parent, monkeypatch, 'echo "$@ [$ADLOOM_S3__PROFILE]"')
    return connection


def test_a_backup_goes_where_the_environment_says_with_keys_that_may_write(
    connection: LakeConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADLOOM_BACKUP", "s3a://backups/ads")
    monkeypatch.setenv("ADLOOM_S3__PROFILE", "adloom-airflow")
    monkeypatch.setenv("ADLOOM_MAINTENANCE_PROFILE", "adloom-jobs")
    assert back_up_lake(LAKE) == f"backup s3a://backups/ads --lake {connection.location} [adloom-jobs]"


def test_what_the_connection_says_precedes_the_environment(
    connection: LakeConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADLOOM_BACKUP", "s3a://backups/ads")
    own = replace(connection, variables={"ADLOOM_BACKUP": "s3a://eu-backups/ads"})
    monkeypatch.setattr(lake_connection, "connect", lambda _lake: own)
    assert back_up_lake(LAKE).startswith("backup s3a://eu-backups/ads --lake")


def test_without_a_place_for_the_copy_the_task_is_skipped(connection: LakeConnection) -> None:
    with pytest.raises(
        AirflowSkipException, match=f"nothing says where to copy .*{connection.lake.path} to; set ADLOOM_BACKUP"
    ):
        back_up_lake(LAKE)


def test_a_backup_that_is_refused_may_be_tried_again(
    connection: LakeConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADLOOM_BACKUP", "s3a://backups/ads")
    refusal = "echo 'error: job repair of lake ads is held by another process'; exit 1"
    fake_command(connection.lake.path.parent, monkeypatch, refusal)
    with pytest.raises(CommandError, match="is held by another process"):
        back_up_lake(LAKE)
