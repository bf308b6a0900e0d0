"""`make airflow` for a test: in a folder of its own, on free ports, driven over Airflow's REST API."""

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spark_jobs.contracts.jobs import QUERIES_OF_JOB
from spark_jobs.contracts.lake import Lake
from spark_jobs.runtime.wanted import read_wanted
from tests.support.servers import free_port, wait_until

_CHECKOUT = Path(__file__).parents[2]
_PROGRAM = _CHECKOUT / "infra" / "airflow" / "embedded.py"
_CONF = _CHECKOUT / "infra" / "supervisor" / "airflow.conf"
_BIN = Path(sys.executable).parent
_LONGEST_S = 400


@dataclass
class Airflow:
    """Airflow, the supervisord of the drivers, and the drivers."""

    folder: Path
    lake: Lake
    settings: Mapping[str, str]
    """Of the jobs, as variables."""
    port: int = field(default_factory=free_port)
    execution_port: int = field(default_factory=free_port)
    supervisor_port: int = field(default_factory=free_port)

    def start(self) -> str:
        """Starts it and gives what it told."""
        return self._program("start")

    def stop(self) -> str:
        """Ends it and gives what it told."""
        return self._program("stop")

    @property
    def address(self) -> str:
        """Of its pages."""
        return f"http://127.0.0.1:{self.port}"

    def password(self, user: str) -> str:
        """What ``user`` logs in with."""
        return str(json.loads((self.folder / "passwords.json").read_text())[user])

    def process(self, name: str) -> int:
        """The process of a part of Airflow: ``scheduler``, ``triggerer``, …; 0 while there is none."""
        told = {
            **os.environ,
            "ADLOOM_HOME": str(self.folder),
            "ADLOOM_CHECKOUT": str(_CHECKOUT),
            "ADLOOM_BIN": str(_BIN),
            "ADLOOM_EXECUTION_PORT": str(self.execution_port),
        }
        command = [str(_BIN / "supervisorctl"), "-c", str(_CONF), "pid", name]
        done = subprocess.run(command, env=told, capture_output=True, text=True, check=False, timeout=30)
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

    def call(self, method: str, path: str, body: Mapping[str, Any] | None = None, *, user: str = "admin") -> Any:
        """A request to the REST API as ``user``; an HTTPError if it is refused."""
        login = {"username": user, "password": self.password(user)}
        token = self._request("POST", "/auth/token", login, {})["access_token"]
        return self._request(method, f"/api/v2{path}", body, {"Authorization": f"Bearer {token}"})

    def _request(self, method: str, path: str, body: Mapping[str, Any] | None, headers: Mapping[str, str]) -> Any:
        request = urllib.request.Request(
            f"{self.address}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json", **headers},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read() or b"null")

    def trigger(self, dag: str, **form: object) -> str:
        """Starts a run of ``dag`` with ``form`` and gives its id."""
        run = self.call("POST", f"/dags/{dag}/dagRuns", {"logical_date": None, "conf": form})
        return str(run["dag_run_id"])

    def state(self, dag: str, run: str) -> str:
        """The state of a run."""
        return str(self.call("GET", f"/dags/{dag}/dagRuns/{run}")["state"])

    def wait_for(self, dag: str, run: str, state: str) -> None:
        """Returns when the run has ended in ``state``."""
        wait_until(lambda: self.state(dag, run) in ("success", "failed"), _LONGEST_S, f"{dag} did not end")
        assert self.state(dag, run) == state, f"{dag}: {self.state(dag, run)}, not {state}"

    def running(self, dag: str) -> list[str]:
        """The ids of the runs of ``dag`` that are going on."""
        runs = self.call("GET", f"/dags/{dag}/dagRuns?state=running")["dag_runs"]
        return [str(run["dag_run_id"]) for run in runs]

    def log(self, dag: str, run: str, task: str) -> str:
        """What a task told."""
        return json.dumps(self.call("GET", f"/dags/{dag}/dagRuns/{run}/taskInstances/{task}/logs/1"))

    def mark(self, dag: str, run: str, task: str, state: str) -> None:
        """Marks a task as in the UI."""
        self.call("PATCH", f"/dags/{dag}/dagRuns/{run}/taskInstances/{task}", {"new_state": state})

    def pause(self, dag: str, *, is_paused: bool) -> None:
        """Pauses ``dag``, or lets it go on."""
        self.call("PATCH", f"/dags/{dag}", {"is_paused": is_paused})

    def drivers(self, job: str) -> list[int]:
        """The processes that run ``job`` on this lake."""
        wanted = f"job\0{job}\0--lake\0{self.lake.root}\0".encode()
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    command = (entry / "cmdline").read_bytes()
                except OSError:
                    continue
                if wanted in command:
                    found.append(int(entry.name))
        return found

    def supervisor(self) -> int:
        """The process of the supervisord that runs the drivers."""
        return int((self.folder / "drivers" / "supervisord.pid").read_text())

    def left(self) -> list[int]:
        """The drivers of any job that are still there."""
        return [pid for job in QUERIES_OF_JOB for pid in self.drivers(job)]

    def is_wanted(self, job: str) -> bool:
        """Whether the lake says that ``job`` is to run."""
        wanted = read_wanted(self.lake, job)
        return wanted is not None and wanted.state == "running"
