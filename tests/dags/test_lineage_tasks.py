"""Lineage from Airflow: skipped without a transport, and each event is a part of the task's own run if that is told."""

import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowSkipException

from ad_dags.commands import CommandError
from ad_dags.connection import lake_connection
from ad_dags.connection.lake_connection import LakeConnection
from ad_dags.dags.emit_lineage import emit_lineage
from spark_jobs.config.settings import Settings, load_settings
from spark_jobs.lake.open import open_lake
from spark_jobs.places import CHECKPOINTS
from tests.dags.fakes import LAKE, RecordingLauncher, fake_command

_TASK = SimpleNamespace(dag_id="emit_lineage", task_id="emit_lineage")
_ID = "airflow/emit_lineage.emit_lineage/f99310b4-3c3c-1a1a-2b2b-c1b95c24ff11"


@pytest.fixture
def connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LakeConnection:
    """A lake with a transport, and a command that prints its words and its parent."""
    lake = open_lake(str(tmp_path / "lake"))
    lake.files.write(f"{CHECKPOINTS}/attribute/attribute/v1.json", b"{}")
    to_file = {"ADLOOM_LINEAGE__TRANSPORT": "file", "ADLOOM_LINEAGE__FILE": str(tmp_path / "events.jsonl")}
    variables = {"ADLOOM_S3__PROFILE": "of-the-connection"}
    connection = LakeConnection(
        str(lake.path), None, load_settings(None, to_file), lake, RecordingLauncher(), variables
    )
    monkeypatch.setattr(lake_connection, "connect", lambda _lake: connection)
    fake_command(connection.lake.path.parent, monkeypatch, 'echo "$1 [$OPENLINEAGE_PARENT_ID] $ADLOOM_S3__PROFILE"')
    return connection


def _install_provider(monkeypatch: pytest.MonkeyPatch, *, is_disabled: bool) -> None:
    """As Airflow's provider of OpenLineage is found by its name."""
    members: dict[str, dict[str, Any]] = {
        "": {},
        ".conf": {"is_disabled": lambda: is_disabled},
        ".plugins": {},
        ".plugins.macros": {"lineage_parent_id": lambda task: f"airflow/{task.dag_id}.{task.task_id}/{_ID[-36:]}"},
    }
    for name, content in members.items():
        module = ModuleType(f"airflow.providers.openlineage{name}")
        module.__dict__.update(content, __path__=[])
        monkeypatch.setitem(sys.modules, module.__name__, module)


def test_events_are_a_part_of_the_run_of_the_task(connection: LakeConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    assert connection.location
    _install_provider(monkeypatch, is_disabled=False)
    assert emit_lineage(LAKE, task_instance=_TASK) == f"lineage [{_ID}] of-the-connection"


def test_a_provider_that_sends_nothing_is_no_parent(
    connection: LakeConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert connection.location
    _install_provider(monkeypatch, is_disabled=True)
    assert emit_lineage(LAKE, task_instance=_TASK) == "lineage [] of-the-connection"


def test_without_the_provider_events_have_no_parent(
    connection: LakeConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert connection.location
    monkeypatch.setitem(sys.modules, "airflow.providers.openlineage", None)
    monkeypatch.setenv("OPENLINEAGE_PARENT_ID", _ID)
    assert emit_lineage(LAKE, task_instance=_TASK) == "lineage [] of-the-connection", "it is that of another program"


def test_without_a_transport_the_task_is_skipped(connection: LakeConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    silent = replace(connection, settings=Settings())
    monkeypatch.setattr(lake_connection, "connect", lambda _lake: silent)
    with pytest.raises(AirflowSkipException, match=r"lineage\.transport is none"):
        emit_lineage(LAKE, task_instance=_TASK)


def test_a_server_that_is_away_fails_the_task(connection: LakeConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_command(connection.lake.path.parent, monkeypatch, "echo 'error: http://marquez:5000 does not answer'; exit 1")
    with pytest.raises(CommandError, match="does not answer"):
        emit_lineage(LAKE, task_instance=_TASK)
