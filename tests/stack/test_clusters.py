"""Drivers on a real YARN: one of each job, drained by word in the lake, started again when they die."""

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from ad_dags.connection.lake_connection import LakeConnection, connect
from ad_dags.connection.lakes import LakeRef
from ad_dags.drivers.launchers import DriverState
from spark_jobs.contract.tables import BRONZE_EVENTS
from spark_jobs.lake.open import open_lake
from spark_jobs.queries.registry import QUERIES_OF_JOB
from spark_jobs.streams.desired_state import stop_requested_at
from tests.stack.flow import adloom
from tests.stack.yarn import Yarn
from tests.support.equality import assert_lake_equals_oracle, generate_source
from tests.support.lakes import read_table
from tests.support.servers import wait_until

pytestmark = [pytest.mark.stack, pytest.mark.slow]

_LONGEST_S = 240
_SETTINGS = """
[spark]
driver_memory = "1g"
[job]
trigger = "asap"
[heartbeat]
idle_after = "0s"
"""


@pytest.fixture
def yarn(tmp_path: Path) -> Iterator[Yarn]:
    server = Yarn(tmp_path / "yarn")
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture
def connection(yarn: Yarn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LakeConnection:
    """As Airflow's processes would find it."""
    for folder in ("source", "lake"):
        (tmp_path / folder).mkdir()
    (tmp_path / "adloom.toml").write_text(_SETTINGS)
    variables = {
        "ADLOOM_LAKE": str(tmp_path / "lake"),
        "ADLOOM_CONFIG": str(tmp_path / "adloom.toml"),
        "ADLOOM_SOURCE": str(tmp_path / "source"),
        "ADLOOM_CLUSTER": "yarn",
        "ADLOOM_YARN_ADDRESS": yarn.address,
        "HADOOP_CONF_DIR": str(yarn.configuration),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return connect(LakeRef())


def _wait_for(connection: LakeConnection, job: str, *states: DriverState) -> None:
    wait_until(lambda: connection.launcher.inspect(job).state in states, _LONGEST_S, f"{job} is not {states}")


@pytest.mark.timeout(1800)
def test_drivers_on_yarn_are_one_of_each_drain_and_lose_nothing(connection: LakeConnection, tmp_path: Path) -> None:
    whole = generate_source(tmp_path / "whole", events=2400, seed=97, files=3)
    first, second, third = sorted(whole.iterdir())
    launcher = connection.launcher
    assert launcher.inspect("attribute").state is DriverState.STOPPED
    shutil.copy2(first, tmp_path / "source")
    for job in QUERIES_OF_JOB:
        launcher.start(job)
        launcher.start(job)  # it is on its way: nothing happens
        _wait_for(connection, job, DriverState.RUNNING)
    wait_until(
        lambda: len(read_table(connection.lake, BRONZE_EVENTS)) == _records(first), _LONGEST_S, "it did not come in"
    )
    wait_until(lambda: launcher.inspect("deduplicate").process_id is not None, _LONGEST_S, "no process was reported")

    # Killed, it is gone, and can be started again.
    killed = launcher.inspect("deduplicate").process_id
    assert killed
    os.kill(killed, signal.SIGKILL)
    shutil.copy2(second, tmp_path / "source")
    _wait_for(connection, "deduplicate", DriverState.FAILED)
    assert "137" in launcher.inspect("deduplicate").detail, "SIGKILL, as a shell reports it"
    launcher.start("deduplicate")
    wait_until(
        lambda: len(read_table(connection.lake, BRONZE_EVENTS)) == _records(first, second),
        _LONGEST_S,
        "it did not go on",
    )

    # Asked to stop, it finishes its batches; the next one does not heed what its predecessor was asked.
    for job in QUERIES_OF_JOB:
        launcher.stop(job)
        assert stop_requested_at(connection.lake, job)
        _wait_for(connection, job, DriverState.STOPPED)
        assert "the lake asks it to stop" in launcher.log(job)
        assert "nothing was left running" in launcher.log(job)
    shutil.copy2(third, tmp_path / "source")
    launcher.start("deduplicate")
    wait_until(
        lambda: len(read_table(connection.lake, BRONZE_EVENTS)) == _records(*whole.iterdir()), _LONGEST_S, "it waits"
    )
    launcher.stop("deduplicate")
    _wait_for(connection, "deduplicate", DriverState.STOPPED)
    launcher.start("attribute")
    _wait_for(connection, "attribute", DriverState.RUNNING)
    launcher.stop("attribute")
    _wait_for(connection, "attribute", DriverState.STOPPED)

    lake = open_lake(connection.location)
    adloom("drain", "--lake", connection.location, "--config", str(connection.config))
    assert_lake_equals_oracle(lake, whole, connection.settings)


def _records(*files: Path) -> int:
    return sum(len(file.read_bytes().splitlines()) for file in files)
