"""`make airflow` for tests: in its own folder, on free ports, driven through Airflow's REST API."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from spark_jobs.lake.layout import Lake
from spark_jobs.queries.registry import QUERIES_OF_JOB
from tests.support.airflow_client import AirflowClient
from tests.support.servers import free_port

_CHECKOUT = Path(__file__).parents[2]
_PROGRAM = _CHECKOUT / "infra" / "airflow" / "embedded.py"
_CONF = _CHECKOUT / "infra" / "supervisor" / "airflow.conf"
_BIN = Path(sys.executable).parent
_LONGEST_S = 400


@dataclass
class Airflow(AirflowClient):
    """Airflow, the supervisord of the drivers, and the drivers."""

    folder: Path
    lake: Lake
    settings: Mapping[str, str]
    """Settings of the jobs, as environment variables."""
    port: int = field(default_factory=free_port)
    execution_port: int = field(default_factory=free_port)
    supervisor_port: int = field(default_factory=free_port)

    def start(self) -> str:
        """Starts it and returns its output; nothing is left running if it fails."""
        try:
            return self._program("start")
        except AssertionError:
            self.stop()
            raise

    def stop(self) -> str:
        """Stops it and returns its output."""
        return self._program("stop")

    @property
    def address(self) -> str:
        """The URL of its pages."""
        return f"http://127.0.0.1:{self.port}"

    def password(self, user: str) -> str:
        """The password of ``user``."""
        return str(json.loads((self.folder / "passwords.json").read_text())[user])

    def process(self, name: str) -> int:
        """The process of a part of Airflow: ``scheduler``, ``triggerer``, …; 0 while there is none."""
        environment = {
            **os.environ,
            "ADLOOM_HOME": str(self.folder),
            "ADLOOM_CHECKOUT": str(_CHECKOUT),
            "ADLOOM_BIN": str(_BIN),
            "ADLOOM_EXECUTION_PORT": str(self.execution_port),
        }
        command = [str(_BIN / "supervisorctl"), "-c", str(_CONF), "pid", name]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=30)
        return int(done.stdout.strip() or 0)

    def _program(self, word: str) -> str:
        environment = {
            **os.environ,
            **self.settings,
            "ADLOOM_HOME": str(self.folder),
            "ADLOOM_LAKE": self.lake.root,
            "ADLOOM_AIRFLOW_PORT": str(self.port),
            "ADLOOM_EXECUTION_PORT": str(self.execution_port),
            "ADLOOM_SUPERVISOR_ADDRESS": f"127.0.0.1:{self.supervisor_port}",
        }
        command = [sys.executable, str(_PROGRAM), word]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=_LONGEST_S)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def drivers(self, job: str) -> list[int]:
        """The ids of the processes that run ``job`` on this lake."""
        wanted = f"job\0{job}\0--lake\0{self.lake.root}\0".encode()
        return [int(entry.name) for entry, command in _processes() if wanted in command]

    def supervisor(self) -> int:
        """The process id of the supervisord that runs the drivers."""
        return int((self.folder / "drivers" / "supervisord.pid").read_text())

    def left(self) -> list[int]:
        """The drivers of all jobs, and the workers of schedulers, that are still running."""
        return [*(pid for job in QUERIES_OF_JOB for pid in self.drivers(job)), *self.workers()]

    def workers(self, doing: bytes = b"") -> list[int]:
        """The worker processes of all schedulers, killed ones included; only those ``doing`` this, if given."""
        title = b"airflow worker -- LocalExecutor" + doing
        found = [entry for entry, command in _processes() if command.startswith(title)]
        return [int(entry.name) for entry in found if _folder_of(entry) == self.folder]


def _processes() -> Iterator[tuple[Path, bytes]]:
    """Each process of this machine: its folder in /proc and its command line."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):  # it has just exited
                yield entry, (entry / "cmdline").read_bytes()


def _folder_of(process: Path) -> Path | None:
    """The working directory of a process; None if it has exited."""
    with suppress(OSError):
        return (process / "cwd").readlink()
    return None
