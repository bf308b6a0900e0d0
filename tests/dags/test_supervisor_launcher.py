"""Drivers under a real supervisord: one per job, stopped by SIGTERM to Python only."""

import configparser
import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from ad_dags.drivers.launchers import DriverState, LauncherError
from ad_dags.drivers.launchers.supervisor import SupervisorLauncher
from spark_jobs.queries.registry import QUERIES_OF_JOB
from tests.support.servers import end, free_port, is_open, wait_until

_CONF = Path(__file__).parents[2] / "infra" / "supervisor" / "drivers.conf"
_PASSWORD = "correct horse"  # noqa: S105
_DRIVER = """#!{python}
# Stands in for `adloom driver`: prints its arguments, waits, and on SIGTERM finishes its batch and exits with 0.
import os, pathlib, signal, subprocess, sys, time
here = pathlib.Path({folder!r})
print("driver", *sys.argv[1:], "password", repr(os.environ.get("ADLOOM_SUPERVISOR_PASSWORD")), flush=True)
child = subprocess.Popen(["sleep", "300"])
(here / "child").write_text(str(child.pid))
def stop(*_):
    time.sleep(0.5)
    print("child alive at the end:", child.poll() is None, flush=True)
    child.kill()
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
if (here / "broken").exists():
    child.kill()
    sys.exit("it is broken")
while True:
    time.sleep(0.1)
"""


@dataclass
class Supervisor:
    """The test's own supervisord."""

    folder: Path
    port: int

    def start(self) -> subprocess.Popen[bytes]:
        program = self.folder / "adloom"
        program.write_text(_DRIVER.format(python=sys.executable, folder=str(self.folder)))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        conf = self.folder / "drivers.conf"
        conf.write_text(_CONF.read_text())
        environment = {
            **os.environ,
            "ADLOOM_COMMAND": str(program),
            "ADLOOM_LAKE": "s3a://ads/lake",
            "ADLOOM_DRIVER_OPTIONS": "--config adloom.toml",
            "ADLOOM_DRIVERS": str(self.folder),
            "ADLOOM_METRICS_DEDUPLICATE": "127.0.0.1:9108",
            "ADLOOM_METRICS_ATTRIBUTE": "",
            "ADLOOM_METRICS_MEASURE": "",
            "ADLOOM_SUPERVISOR_ADDRESS": f"127.0.0.1:{self.port}",
            "ADLOOM_SUPERVISOR_PASSWORD": _PASSWORD,
        }
        command = [sys.executable, "-m", "supervisor.supervisord", "-c", str(conf)]
        process = subprocess.Popen(
            command, env=environment, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        wait_until(lambda: is_open(self.port), 30, "supervisord does not listen")
        return process


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    own = Supervisor(tmp_path, free_port())
    process = own.start()
    yield own
    end(process)


@pytest.fixture
def launcher(supervisor: Supervisor) -> SupervisorLauncher:
    return SupervisorLauncher(f"127.0.0.1:{supervisor.port}", _PASSWORD)


def _becomes(launcher: SupervisorLauncher, state: DriverState, job: str = "attribute") -> None:
    wait_until(lambda: launcher.inspect(job).state is state, 30, f"{job} was never {state}")


def test_there_is_a_program_for_every_job_and_all_have_the_same_settings() -> None:
    parser = configparser.RawConfigParser()
    parser.read(_CONF)
    programs = {name.removeprefix("program:"): dict(parser[name]) for name in parser if name.startswith("program:")}
    assert programs.keys() == QUERIES_OF_JOB.keys()
    alike = [
        {key: text.replace(job, "JOB").replace(job.upper(), "JOB") for key, text in program.items()}
        for job, program in programs.items()
    ]
    assert all(program == alike[0] for program in alike)


def test_a_driver_is_started_once_and_stopped(launcher: SupervisorLauncher, supervisor: Supervisor) -> None:
    assert launcher.inspect("attribute").state is DriverState.STOPPED
    launcher.start("attribute")
    launcher.start("attribute")
    _becomes(launcher, DriverState.RUNNING)
    process_id = launcher.inspect("attribute").process_id
    wait_until(lambda: bool(launcher.log("attribute")), 30, "it wrote no log")
    launcher.start("attribute")
    assert launcher.inspect("attribute").process_id == process_id
    assert launcher.inspect("deduplicate").state is DriverState.STOPPED
    launcher.stop("attribute")
    assert launcher.inspect("attribute").state is DriverState.STOPPING
    launcher.stop("attribute")
    _becomes(launcher, DriverState.STOPPED)
    launcher.stop("attribute")
    log = launcher.log("attribute")
    assert log.count("driver driver attribute --lake s3a://ads/lake --config adloom.toml") == 1
    assert "child alive at the end: True" in log, "SIGTERM went to Java too"
    assert _PASSWORD not in log
    assert _PASSWORD not in (supervisor.folder / "supervisord.log").read_text()


def test_a_driver_that_is_killed_has_failed_and_is_left_to_whoever_supervises_it(launcher: SupervisorLauncher) -> None:
    launcher.start("attribute")
    _becomes(launcher, DriverState.RUNNING)
    first = launcher.inspect("attribute").process_id
    assert first
    os.kill(first, 9)
    _becomes(launcher, DriverState.FAILED)
    time.sleep(3)
    assert launcher.inspect("attribute").state is DriverState.FAILED, "supervisord has started it again"


def test_a_driver_that_cannot_start_has_failed_and_its_log_says_why(
    launcher: SupervisorLauncher, supervisor: Supervisor
) -> None:
    (supervisor.folder / "broken").touch()
    launcher.start("attribute")
    _becomes(launcher, DriverState.FAILED)
    found = launcher.inspect("attribute")
    assert not found.state.is_alive
    assert found.process_id is None
    assert "it is broken" in launcher.log("attribute")
    (supervisor.folder / "broken").unlink()
    launcher.start("attribute")
    _becomes(launcher, DriverState.RUNNING)


@pytest.mark.parametrize(
    ("connect", "why"),
    [
        pytest.param(lambda address: SupervisorLauncher(address, "wrong"), "refuses the password", id="password"),
        pytest.param(lambda _: SupervisorLauncher(f"127.0.0.1:{free_port()}", "x"), "does not answer", id="nobody"),
    ],
)
def test_errors_do_not_contain_the_password(
    supervisor: Supervisor, connect: Callable[[str], SupervisorLauncher], why: str
) -> None:
    with pytest.raises(LauncherError, match=why) as raised:
        connect(f"127.0.0.1:{supervisor.port}").start("attribute")
    assert "wrong" not in str(raised.value)


def test_an_unknown_job_is_named(launcher: SupervisorLauncher) -> None:
    with pytest.raises(LauncherError, match="has no program nonsense"):
        launcher.inspect("nonsense")
