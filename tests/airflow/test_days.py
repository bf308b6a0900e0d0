"""A real Airflow, its lake described by a connection: days and validated versions start the DAGs that wait for them.

The lake that the environment names is empty, so whatever is found was found by way of the connection: by tasks, by the
triggerer, and by the pages.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import astuple, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.contract.tables import ATTRIBUTIONS, DAYS
from spark_jobs.days.day import Day, DayStatus
from spark_jobs.lake.layout import Lake, commit_key
from spark_jobs.lake.notes import CommitNote
from spark_jobs.lake.open import open_lake
from spark_jobs.places import CHECKPOINTS, VALIDATED
from spark_jobs.queries.registry import QUERIES
from spark_jobs.spark.write_delta import replace_all
from tests.airflow.embedded import Airflow
from tests.support.servers import wait_until

_CHECKOUT = Path(__file__).parents[2]
_FILES = ("dags/adloom.py", "examples/bill_day.py", "examples/publish_gold.py")
_DAGS = {"close_days", "validate_tables", "us_close_days", "bill_day", "publish_gold"}
"""Those that run; the others stay paused."""
_TABLES = sorted(query.writes.name for query in QUERIES if query.is_correctable)
"""The tables of which days are told."""
_LONGEST_S = 300

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(1200)]


def _lake(folder: Path) -> Lake:
    own = open_lake(str(folder))
    own.files.write(f"{CHECKPOINTS}/attribute/attribute/v1.json", b"{}")  # a job has run
    return own


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return _lake(tmp_path / "lake")


@pytest.fixture
def other_lake(tmp_path: Path) -> Lake:
    """Another lake of the same Airflow; its DAGs begin with ``us_``."""
    return _lake(tmp_path / "us")


@pytest.fixture
def command(tmp_path: Path) -> Path:
    """The command adloom, except that every validation passes: what it leaves in the lake is written by the test."""
    program = tmp_path / "adloom"
    real = Path(sys.executable).with_name("adloom")
    program.write_text(f'#!/bin/sh\ncase "$1" in validate|report) exit 0 ;; esac\nexec {real} "$@"\n')
    program.chmod(0o755)
    return program


@pytest.fixture
def airflow(lake: Lake, other_lake: Lake, command: Path, tmp_path: Path) -> Iterator[Airflow]:
    dags = tmp_path / "dags"
    dags.mkdir()
    for name in _FILES:
        (dags / Path(name).name).symlink_to(_CHECKOUT / name)
    settings = {
        "ADLOOM_COMMAND": str(command),
        "ADLOOM_LAKES": "=ads,us_=ads_us",
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        # Until there is the connection.
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "true",
    }
    own = Airflow(tmp_path / "airflow", open_lake(str(tmp_path / "elsewhere")), settings)
    own.start()
    for name, its in (("ads", lake), ("ads_us", other_lake)):
        own.call("POST", "/connections", {"connection_id": name, "conn_type": "adloom", "host": str(its.path)})
    wait_until(lambda: _known(own) >= _DAGS, _LONGEST_S, "Airflow does not know the DAGs")
    for dag in _DAGS:
        own.pause(dag, is_paused=False)
    yield own
    own.stop()
    assert own.left() == []


def _known(airflow: Airflow) -> set[str]:
    return {dag["dag_id"] for dag in airflow.call("GET", "/dags")["dags"]}


def _told(airflow: Airflow) -> list[tuple[str, str | None, dict[str, Any]]]:
    """Each event that a task has told: asset, partition key and extra; sorted by key and name, restatements last."""
    events = airflow.call("GET", "/assets/events?limit=100")["asset_events"]
    found = [(event["name"], event["partition_key"], event["extra"]) for event in events if event["source_task_id"]]
    return sorted(found, key=lambda event: (event[0].endswith("restated"), event[1] or "", event[0]))


def _runs(airflow: Airflow, dag: str) -> list[dict[str, Any]]:
    """The runs of ``dag``, the last at the end."""
    runs = airflow.call("GET", f"/dags/{dag}/dagRuns?limit=100")["dag_runs"]
    return sorted(runs, key=lambda run: str(run["start_date"]))


def _succeeded(airflow: Airflow, dag: str) -> list[dict[str, Any]]:
    return [run for run in _runs(airflow, dag) if run["state"] == "success"]


def _write(spark: SparkSession, lake: Lake, days: list[Day]) -> None:
    rows = spark.createDataFrame([astuple(day) for day in days], DAYS.ddl).coalesce(1)
    replace_all(rows, lake, DAYS, CommitNote(writer="test", batch=1))


def _billed(airflow: Airflow) -> Counter[str]:
    """How often each date was billed, by the runs that have succeeded."""
    return Counter(run["partition_key"] for run in _succeeded(airflow, "bill_day"))


def _close(airflow: Airflow, *billed: str) -> None:
    """Runs ``close_days``, and waits until all of ``billed`` and nothing else has been."""
    run = airflow.trigger("close_days")
    airflow.wait_for("close_days", run, "success")
    assert airflow.call("GET", f"/dags/close_days/dagRuns/{run}/taskInstances/update_days")["pool"] == "adloom"
    wait_until(lambda: _billed(airflow) == Counter(billed), _LONGEST_S, f"billed is {_billed(airflow)}, not {billed}")


def test_days_and_validated_versions_start_the_dags_that_wait_for_them(
    spark: SparkSession, airflow: Airflow, lake: Lake, other_lake: Lake
) -> None:
    now = datetime.now(UTC)
    first = Day("attributions", date(2026, 3, 1), DayStatus.COMPLETE, complete_at=now, version=3)
    everywhere = [replace(first, event_date=date(2026, 3, 2), table_name=table) for table in _TABLES]
    others = [Day("attributions", date(2026, 3, 3)), *everywhere]
    _write(spark, lake, [first, *others])
    _close(airflow, "2026-03-01", "2026-03-02")

    restated = replace(first, status=DayStatus.RESTATED, restated=1, restated_at=now, changes=4, cost_micros=-250)
    _write(spark, lake, [restated, *others])
    _close(airflow, "2026-03-01", "2026-03-02", "2026-03-01")
    _close(airflow, "2026-03-01", "2026-03-02", "2026-03-01")

    assert [(name, key) for name, key, _ in _told(airflow)] == [
        ("adloom/days", None),
        ("adloom_attributions_day_complete", "2026-03-01"),
        *((f"adloom_{table}_day_complete", "2026-03-02") for table in _TABLES),
        ("adloom_attributions_day_restated", "2026-03-01"),
    ]
    extras = {name: extra for name, _, extra in _told(airflow)}
    assert extras["adloom/days"] == {"dates": ["2026-03-02"]}
    change = extras["adloom_attributions_day_restated"]["2026-03-01"]
    assert (change["restated"], change["changes"], change["cost_micros"]) == (1, 4, -250)
    log = airflow.log("bill_day", _runs(airflow, "bill_day")[-1]["dag_run_id"], "bill")
    assert "adloom_attributions_day_restated: 2026-03-01" in log
    assert json.dumps("cost_micros") in log.replace("'", '"').replace('\\"', '"')

    _a_validation_starts_the_dag_that_waits_for_it(airflow, lake)
    assert airflow.page("/adloom/api/streams")["lake"] == str(lake.path)

    _write(spark, other_lake, [replace(first, event_date=date(2026, 4, 1))])
    airflow.wait_for("us_close_days", airflow.trigger("us_close_days"), "success")
    told = [(name, key) for name, key, _ in _told(airflow) if key == "2026-04-01"]
    assert told == [("us_adloom_attributions_day_complete", "2026-04-01")]
    assert "2026-04-01" not in _billed(airflow), "it waits for the days of the first lake"
    assert airflow.page("/adloom/lakes/us_/api/streams")["lake"] == str(other_lake.path)


def _a_validation_starts_the_dag_that_waits_for_it(airflow: Airflow, lake: Lake) -> None:
    airflow.pause("close_days", is_paused=True)  # what is written below is no table
    lake.files.write(VALIDATED, json.dumps({"attributions": 0, "sessions": 4, "events": 9}).encode())
    lake.files.write(commit_key(ATTRIBUTIONS, 1), b"{}")  # which the triggerer sees
    wait_until(
        lambda: bool(_succeeded(airflow, "publish_gold")), _LONGEST_S, "no validated version started publish_gold"
    )
    (run,) = _runs(airflow, "publish_gold")
    log = airflow.log("publish_gold", run["dag_run_id"], "publish")
    assert "'attributions': 0" in log
    assert "'sessions': 4" in log
    assert "asset_triggered" in {run["run_type"] for run in _succeeded(airflow, "validate_tables")}
    airflow.wait_for("validate_tables", airflow.trigger("validate_tables"), "success")
    validated = [(name, extra) for name, _, extra in _told(airflow) if name.startswith("adloom/gold/")]
    assert validated == [("adloom/gold/attributions", {"version": 0}), ("adloom/gold/sessions", {"version": 4})]
