"""What `adloom missed-days` finds in a real Airflow: its database and its API, without a scheduler.

Each DAG has the runs of its story; the days were announced one a day.
"""

import json
import os
import sqlite3
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.support.servers import free_port, running

pytestmark = pytest.mark.derived

_BIN = Path(sys.executable).parent
_COMPLETE, _RESTATED = "adloom_attributions_day_complete", "adloom_attributions_day_restated"
_BOTH = ("eu_adloom_attributions_day_complete", "eu_adloom_sessions_day_complete")
_DAGS = f"""
from airflow.sdk import DAG, Asset, PartitionedAssetTimetable, task

COMPLETE, RESTATED = Asset("{_COMPLETE}"), Asset("{_RESTATED}")

def declare(name, schedule):
    with DAG(name, schedule=schedule, catchup=False) as dag:
        task(lambda: None, task_id="bill")()
    return dag

for name in ("paused_for_two_days", "new", "has_all", "has_failed", "by_hand"):
    globals()[name] = declare(name, PartitionedAssetTimetable(assets=COMPLETE))
corrects = declare("corrects", PartitionedAssetTimetable(assets=COMPLETE | RESTATED))
eu_both = declare("eu_both", PartitionedAssetTimetable(assets=Asset("{_BOTH[0]}") & Asset("{_BOTH[1]}")))
plain = declare("plain", [COMPLETE])
"""
_DAYS = ("2026-03-01", "2026-03-02", "2026-03-03", "2026-03-04")
_NOW = datetime.now(UTC)
_RUNS = {
    "paused_for_two_days": ("2026-03-01", "2026-03-04"),
    "has_all": _DAYS,
    "has_failed": _DAYS,
    "corrects": _DAYS,
}
_FAILED = ("has_failed", "2026-03-03")


def _announced_at(day: str) -> datetime:
    return _NOW - timedelta(days=10 - _DAYS.index(day))


@dataclass(frozen=True)
class _Airflow:
    """An API server and its database."""

    url: str
    database: Path
    token: str

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/api/v2{path}", data, headers, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read())

    def announce(self, asset: str, day: str, at: datetime) -> None:
        """An event, as a task of close_days makes it, but dated ``at``."""
        (own,) = (one for one in self.call("GET", "/assets")["assets"] if one["name"] == asset)
        event = self.call("POST", "/assets/events", {"asset_id": own["id"], "partition_key": day})
        self._date("asset_event", "timestamp", event["id"], at)

    def run(self, dag: str, day: str, at: datetime, *, fails: bool = False) -> None:
        """A run that was queued at ``at`` and has ended."""
        run = self.call("POST", f"/dags/{dag}/dagRuns", {"logical_date": None, "partition_key": day})["dag_run_id"]
        path = f"/dags/{dag}/dagRuns/{quote(run)}"
        self.call("PATCH", path, {"state": "failed" if fails else "success"})
        with sqlite3.connect(self.database) as rows:
            ((number,),) = rows.execute("SELECT id FROM dag_run WHERE dag_id = ? AND run_id = ?", (dag, run)).fetchall()
        self._date("dag_run", "queued_at", number, at)

    def _date(self, table: str, column: str, number: int, at: datetime) -> None:
        with sqlite3.connect(self.database, timeout=20) as rows:
            time = at.strftime("%Y-%m-%d %H:%M:%S.%f")
            rows.execute(f"UPDATE {table} SET {column} = ? WHERE id = ?", (time, number))

    def runs(self, dag: str) -> list[str]:
        """The partition keys of its runs."""
        return [run["partition_key"] for run in self.call("GET", f"/dags/{dag}/dagRuns")["dag_runs"]]

    def adloom(self, *options: str, expected: int = 1) -> str:
        """The output of ``adloom missed-days``."""
        command = [str(_BIN / "adloom"), "missed-days", "--airflow", self.url, *options]
        environment = {**os.environ, "ADLOOM_AIRFLOW_TOKEN": self.token}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == expected, done.stdout + done.stderr
        return done.stdout + done.stderr

    def missed(self, dag: str, *options: str, expected: int = 1) -> list[tuple[str, str | None]]:
        """The dates that are listed for ``dag``, and the states of their runs."""
        rows = json.loads(self.adloom("--dag", dag, "--json", *options, expected=expected))
        return [(row["date"], row["state"]) for row in rows]


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Airflow]:
    home, port = tmp_path_factory.mktemp("airflow"), free_port()
    (home / "dags").mkdir()
    (home / "dags" / "consumers.py").write_text(_DAGS)
    environment = {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "true",
        "AIRFLOW__API_AUTH__JWT_SECRET": "of the tests, and long enough for every algorithm that may sign " * 2,
    }
    airflow = str(_BIN / "airflow")
    for words in (["db", "migrate"], ["dags", "reserialize"]):
        subprocess.run([airflow, *words], env={**os.environ, **environment}, check=True, capture_output=True)
    server = [airflow, "api-server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    with running(server, port, home / "log", **environment):
        url = f"http://127.0.0.1:{port}"
        with urllib.request.urlopen(f"{url}/auth/token", timeout=30) as answer:
            own = _Airflow(url, home / "airflow.db", json.loads(answer.read())["access_token"])
        _set_up(own)
        yield own


def _set_up(airflow: _Airflow) -> None:
    for day in _DAYS:
        airflow.announce(_COMPLETE, day, _announced_at(day))
        airflow.announce(_BOTH[0], day, _announced_at(day))
    for dag, days in _RUNS.items():
        for day in days:
            airflow.run(dag, day, _announced_at(day) + timedelta(minutes=1), fails=(dag, day) == _FAILED)
    airflow.announce(_BOTH[1], _DAYS[1], _announced_at(_DAYS[2]))
    airflow.announce(_RESTATED, _DAYS[0], _announced_at(_DAYS[3]))


def test_a_dag_that_was_paused_for_two_days_missed_exactly_these(airflow: _Airflow) -> None:
    assert airflow.missed("paused_for_two_days") == [("2026-03-02", None), ("2026-03-03", None)]


def test_a_new_dag_missed_every_day_that_was_announced(airflow: _Airflow) -> None:
    assert airflow.missed("new") == [(day, None) for day in _DAYS]


def test_since_a_date_only_what_was_announced_from_then_on_counts(airflow: _Airflow) -> None:
    since = (_announced_at("2026-03-03")).date().isoformat()
    assert airflow.missed("new", "--since", since) == [("2026-03-03", None), ("2026-03-04", None)]


def test_a_dag_with_all_its_runs_missed_nothing(airflow: _Airflow) -> None:
    assert airflow.missed("has_all", expected=0) == []
    assert "every day announced since" in airflow.adloom("--dag", "has_all", expected=0)


def test_a_failed_run_is_shown_and_not_missed(airflow: _Airflow) -> None:
    assert airflow.missed("has_failed", expected=0) == [("2026-03-03", "failed")]
    shown = airflow.adloom("--dag", "has_failed", expected=0)
    assert "failed: manual__" in shown
    assert "curl" not in shown


def test_a_restatement_after_the_last_run_of_its_date_was_missed(airflow: _Airflow) -> None:
    assert airflow.missed("corrects") == [("2026-03-01", None)]
    assert _RESTATED in airflow.adloom("--dag", "corrects")


def test_a_dag_that_waits_for_two_tables_missed_only_dates_that_both_have(airflow: _Airflow) -> None:
    assert airflow.missed("eu_both") == [("2026-03-02", None)]


def test_without_a_name_all_dags_that_have_a_run_for_each_date_are_listed(airflow: _Airflow) -> None:
    rows = json.loads(airflow.adloom("--json"))
    assert {row["dag"] for row in rows} == {
        *("paused_for_two_days", "new", "by_hand", "corrects", "eu_both", "has_failed")
    }


def test_a_dag_without_partitions_is_refused_by_name(airflow: _Airflow) -> None:
    said = airflow.adloom("--dag", "plain")
    assert "--dag 'plain' does not wait for days" in said
    assert "eu_both" in said, "those that do are named"


def test_the_printed_commands_start_the_runs_and_do_not_show_the_token(airflow: _Airflow) -> None:
    shown = airflow.adloom("--dag", "by_hand")
    assert airflow.token not in shown
    commands = [line for line in shown.splitlines() if "curl" in line]
    assert airflow.runs("by_hand") == [], "the command itself starts nothing"
    environment = {**os.environ, "ADLOOM_AIRFLOW_TOKEN": airflow.token}
    for command in commands:
        subprocess.run(["bash", "-c", command], check=True, env=environment, timeout=60)
    assert sorted(airflow.runs("by_hand")) == list(_DAYS)
    assert airflow.missed("by_hand", expected=0) == []


def test_a_token_that_airflow_refuses_ends_with_what_to_do(airflow: _Airflow) -> None:
    other = _Airflow(airflow.url, airflow.database, "no token")
    assert "set ADLOOM_AIRFLOW_TOKEN to a new one" in other.adloom()
