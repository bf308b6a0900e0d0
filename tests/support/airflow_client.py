"""A client of Airflow's REST API."""

import json
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from spark_jobs.lake.layout import Lake
from spark_jobs.streams.desired_state import read_desired
from tests.support.dag_names import DAG_NAMES
from tests.support.servers import wait_until

_LONGEST_S = 900
_CHANGING = (
    "back_up_lake",
    "balance_ledger",
    "clean_checkpoints",
    "close_days",
    "credit_conversions",
    "emit_lineage",
    "maintain_tables",
    "mark_invalid",
    "repair_late",
    "replay_audit",
)
"""DAGs whose scheduled runs change tables, hold locks or read the whole lake, at some minute of the hour."""


class AirflowClient(ABC):
    """An Airflow that runs somewhere, whose jobs write to ``lake``."""

    lake: Lake

    @property
    @abstractmethod
    def address(self) -> str:
        """The URL of its pages."""

    @abstractmethod
    def password(self, user: str) -> str:
        """The password of ``user``."""

    def call(self, method: str, path: str, body: Mapping[str, Any] | None = None, *, user: str = "admin") -> Any:
        """Sends a request to the REST API as ``user``; raises an HTTPError if it is refused."""
        return self._request(method, f"/api/v2{path}", body, self._login(user))

    def page(self, path: str, *, user: str = "admin") -> Any:
        """The JSON at ``path`` of adloom's own pages, as ``user`` gets it."""
        return self._request("GET", path, None, self._login(user))

    def _login(self, user: str) -> dict[str, str]:
        login = {"username": user, "password": self.password(user)}
        return {"Authorization": f"Bearer {self._request('POST', '/auth/token', login, {})['access_token']}"}

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
        """Triggers a run of ``dag`` with ``form`` and returns its id."""
        run = self.call("POST", f"/dags/{dag}/dagRuns", {"logical_date": None, "conf": form})
        return str(run["dag_run_id"])

    def wait_for_dags(self) -> None:
        """Waits until Airflow knows every DAG; its pages answer before that."""
        names = set(DAG_NAMES)

        def are_known() -> bool:
            return names <= {dag["dag_id"] for dag in self.call("GET", "/dags?limit=100")["dags"]}

        wait_until(are_known, _LONGEST_S, f"Airflow does not know all of {', '.join(sorted(names))}")

    def state(self, dag: str, run: str) -> str:
        """The state of a run."""
        return str(self.call("GET", f"/dags/{dag}/dagRuns/{run}")["state"])

    def wait_for(self, dag: str, run: str, state: str) -> None:
        """Waits until the run has ended, and checks that it ended in ``state``."""
        wait_until(lambda: self.state(dag, run) in ("success", "failed"), _LONGEST_S, f"{dag} did not end")
        assert self.state(dag, run) == state, f"{dag}: {self.state(dag, run)}, not {state}"

    def running(self, dag: str) -> list[str]:
        """The ids of the active runs of ``dag``."""
        runs = self.call("GET", f"/dags/{dag}/dagRuns?state=running")["dag_runs"]
        return [str(run["dag_run_id"]) for run in runs]

    def log(self, dag: str, run: str, task: str) -> str:
        """The log of a task."""
        return json.dumps(self.call("GET", f"/dags/{dag}/dagRuns/{run}/taskInstances/{task}/logs/1"))

    def mark(self, dag: str, run: str, task: str, state: str) -> None:
        """Marks a task, as the UI does."""
        self.call("PATCH", f"/dags/{dag}/dagRuns/{run}/taskInstances/{task}", {"new_state": state})

    def pause(self, dag: str, *, is_paused: bool) -> None:
        """Pauses or unpauses ``dag``."""
        self.call("PATCH", f"/dags/{dag}", {"is_paused": is_paused})

    def pause_changing(self, *needed: str) -> None:
        """Pauses the DAGs that run by the clock and change or read the lake, so that no test meets one; not ``needed``.

        One that is resumed makes up for its last run, and a run that is triggered while it is paused does not start.
        """
        for dag in _CHANGING:
            if dag not in needed:
                self.pause(dag, is_paused=True)

    def is_wanted(self, job: str) -> bool:
        """Whether the lake says that ``job`` is to run."""
        wanted = read_desired(self.lake, job)
        return wanted is not None and wanted.state == "running"
