"""New versions of gold fire once, not too often, and only until a validation has passed them."""

import asyncio
import json
import os
import subprocess
import sys
from contextlib import aclosing
from pathlib import Path

import pytest

from ad_dags.connection.lake_connection import LakeConnection
from ad_dags.drivers.triggers import new_versions as triggers
from ad_dags.drivers.triggers.new_versions import NewVersionsTrigger, new_versions
from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import ATTRIBUTIONS, SESSIONS, SILVER_EVENTS, Table
from spark_jobs.errors import LakeError
from spark_jobs.lake.layout import Lake, commit_key
from spark_jobs.lake.open import open_lake
from spark_jobs.places import VALIDATED
from tests.dags.fakes import RecordingLauncher


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return open_lake(str(tmp_path / "lake"))


def _commit(lake: Lake, table: Table, version: int) -> None:
    lake.files.write(commit_key(table, version), b"{}")


def test_versions_that_were_neither_validated_nor_fired_are_new(lake: Lake) -> None:
    assert new_versions(lake, {}) == {}
    _commit(lake, SILVER_EVENTS, 7)
    assert new_versions(lake, {}) == {}, "silver is not gold"
    _commit(lake, ATTRIBUTIONS, 0)
    _commit(lake, SESSIONS, 3)
    assert new_versions(lake, {}) == {"attributions": 0, "sessions": 3}
    assert new_versions(lake, {"attributions": 0, "sessions": 2}) == {"sessions": 3}
    lake.files.write(VALIDATED, json.dumps({"sessions": 3}).encode())
    assert new_versions(lake, {"attributions": 0}) == {}
    _commit(lake, SESSIONS, 4)
    assert new_versions(lake, {"attributions": 0}) == {"sessions": 4}


@pytest.mark.parametrize("damaged", [b"{half a fi", b"[]", b""])
def test_a_damaged_record_of_validations_hides_nothing(lake: Lake, damaged: bytes) -> None:
    _commit(lake, SESSIONS, 1)
    lake.files.write(VALIDATED, damaged)
    assert new_versions(lake, {}) == {"sessions": 1}


def test_the_trigger_fires_once_per_version_and_survives_an_unavailable_lake(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = LakeConnection(str(lake.path), None, Settings(), lake, RecordingLauncher())
    looked = 0

    def find(_lake: object) -> LakeConnection:
        nonlocal looked
        looked += 1
        if looked == 1:
            raise LakeError("it is away")
        if looked == 5:
            _commit(lake, SESSIONS, 1)
        return connection

    monkeypatch.setattr(triggers, "connect", find)
    _commit(lake, SESSIONS, 0)

    async def first_two() -> list[dict[str, int]]:
        fired = []
        async with aclosing(NewVersionsTrigger(pause_s=0.02, poll_s=0.01).run()) as events:
            async for event in events:
                fired.append(event.payload["versions"])
                if len(fired) == 2:
                    break
        return fired

    assert asyncio.run(asyncio.wait_for(first_two(), 20)) == [{"sessions": 0}, {"sessions": 1}]
    assert looked >= 5


def test_it_is_recreated_from_its_serialized_form() -> None:
    path, arguments = NewVersionsTrigger(pause_s=60.0, connection="adloom_eu").serialize()
    assert path == "ad_dags.drivers.triggers.new_versions.NewVersionsTrigger"
    assert NewVersionsTrigger(**arguments).serialize() == (path, arguments)


@pytest.mark.parametrize("name", ["supervise.SuperviseDriverTrigger", "new_versions.NewVersionsTrigger"])
def test_a_task_that_was_deferred_before_the_triggers_moved_finds_its_trigger(name: str) -> None:
    """In a fresh interpreter, by the path that Airflow's database has, as the triggerer loads it."""
    script = (
        "from airflow.sdk.module_loading import import_string\n"
        f"print(import_string('ad_dags.triggers.{name}').__module__)\n"
        "from ad_dags.hook import AdloomHook\n"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "dags")}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout.splitlines()[-1:] == [f"ad_dags.drivers.triggers.{name.partition('.')[0]}"], done.stderr
    assert done.returncode == 0, done.stderr
