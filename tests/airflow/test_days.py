"""A real scheduler: a day that is complete, or restated, starts the DAG that waits for it, with its date, once."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import astuple, replace
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.contracts.days import Day, DayStatus
from spark_jobs.contracts.places import CHECKPOINTS
from spark_jobs.contracts.tables import DAYS
from spark_jobs.lake.commits import CommitNote
from spark_jobs.lake.layout import Lake
from spark_jobs.runtime.lakes import open_lake
from spark_jobs.sinks.delta import replace_all
from tests.airflow.embedded import Airflow
from tests.support.servers import wait_until

_CHECKOUT = Path(__file__).parents[2]
_FILES = ("dags/close_days.py", "examples/bill_day.py")
_LONGEST_S = 300

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(1200)]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    own = open_lake(str(tmp_path / "lake"))
    own.files.write(f"{CHECKPOINTS}/attribute/attribute/v1.json", b"{}")  # a job has run
    return own


@pytest.fixture
def airflow(lake: Lake, tmp_path: Path) -> Iterator[Airflow]:
    dags = tmp_path / "dags"
    dags.mkdir()
    for name in _FILES:
        (dags / Path(name).name).symlink_to(_CHECKOUT / name)
    own = Airflow(tmp_path / "airflow", lake, {"AIRFLOW__CORE__DAGS_FOLDER": str(dags)})
    own.start()
    yield own
    own.stop()
    assert own.left() == []


def _write(spark: SparkSession, lake: Lake, days: list[Day]) -> None:
    rows = spark.createDataFrame([astuple(day) for day in days], DAYS.ddl).coalesce(1)
    replace_all(rows, lake, DAYS, CommitNote(writer="test", batch=1))


def _billed(airflow: Airflow) -> Counter[str]:
    """How often each date was billed, by the runs that have succeeded."""
    runs = airflow.call("GET", "/dags/bill_day/dagRuns?limit=100")["dag_runs"]
    return Counter(run["partition_key"] for run in runs if run["state"] == "success")


def _close(airflow: Airflow, *billed: str) -> None:
    """Runs ``close_days``, and waits until all of ``billed`` and nothing else has been."""
    airflow.wait_for("close_days", airflow.trigger("close_days"), "success")
    wait_until(lambda: _billed(airflow) == Counter(billed), _LONGEST_S, f"billed is {_billed(airflow)}, not {billed}")


def test_a_day_that_is_complete_or_restated_starts_the_dag_that_waits_for_it(
    spark: SparkSession, airflow: Airflow, lake: Lake
) -> None:
    def are_known() -> bool:
        return {dag["dag_id"] for dag in airflow.call("GET", "/dags")["dags"]} == {"close_days", "bill_day"}

    wait_until(are_known, _LONGEST_S, "Airflow does not know the DAGs")
    now = datetime.now(UTC)
    first = Day("attributions", date(2026, 3, 1), DayStatus.COMPLETE, complete_at=now, version=3)
    second, open_day = replace(first, event_date=date(2026, 3, 2)), Day("attributions", date(2026, 3, 3))
    other = replace(open_day, table_name="sessions", status=DayStatus.COMPLETE, complete_at=now)
    _write(spark, lake, [first, second, open_day, other])
    _close(airflow, "2026-03-01", "2026-03-02")

    restated = replace(first, status=DayStatus.RESTATED, restated=1, restated_at=now, changes=4, cost_micros=-250)
    _write(spark, lake, [restated, second, open_day, other])
    _close(airflow, "2026-03-01", "2026-03-02", "2026-03-01")
    _close(airflow, "2026-03-01", "2026-03-02", "2026-03-01")

    events = airflow.call("GET", "/assets/events?limit=100")["asset_events"]
    told = [(event["name"], event["partition_key"]) for event in events]
    assert sorted(told) == [
        ("adloom_attributions_day_complete", "2026-03-01"),
        ("adloom_attributions_day_complete", "2026-03-02"),
        ("adloom_attributions_day_restated", "2026-03-01"),
        ("adloom_sessions_day_complete", "2026-03-03"),
    ]
    (change,) = [event["extra"]["2026-03-01"] for event in events if event["name"].endswith("restated")]
    assert (change["restated"], change["changes"], change["cost_micros"]) == (1, 4, -250)
    runs = airflow.call("GET", "/dags/bill_day/dagRuns?limit=100")["dag_runs"]
    last = max(runs, key=lambda run: str(run["start_date"]))["dag_run_id"]
    log = airflow.log("bill_day", last, "bill")
    assert "adloom_attributions_day_restated: 2026-03-01" in log
    assert json.dumps("cost_micros") in log.replace("'", '"').replace('\\"', '"')
