"""Recomputes a random past day of gold from bronze each night, and fails if a row differs that nothing explains.

The day is one that all queries have passed, drawn by the date of the run, so that a retry takes the same one. Nothing
is changed. The task's log says which day it was and how many rows of each table are the same, late, open or unknown;
the report is in the lake under `_reports/replays/`, as JSON and as a page.

A failure is an alarm: somebody changed a table, or adloom has a bug. The runbook says what to do: *A replay finds rows
that nothing explains*.
"""

import re
from datetime import UTC, date, datetime, timedelta
from hashlib import sha256

from airflow.sdk import DAG, task
from airflow.sdk.exceptions import AirflowSkipException

from ad_dags.connection.lake_connection import connect_started
from ad_dags.connection.lakes import LakeRef
from ad_dags.dags.replay_window import replay
from ad_dags.defaults import DagDefaults
from spark_jobs.contract.tables import ATTRIBUTIONS, SESSIONS
from spark_jobs.lake.layout import Lake
from spark_jobs.queries.registry import QUERIES
from spark_jobs.streams.reports import read_reports

_DATE = re.compile(r"event_date=(\d{4}-\d{2}-\d{2})")
_SETTLED = timedelta(days=1)
"""How far all watermarks have passed a day that is audited: by then nothing of it is open."""


def declare(own: DagDefaults) -> DAG:
    """The DAG, for the lake of ``own``."""
    with own.dag("replay_audit", __doc__, tag="quality", schedule="30 3 * * *") as dag:
        task(pool=own.pool)(audit_random_day)(own.lake)
    return dag


def audit_random_day(lake: LakeRef, logical_date: datetime | None = None, run_id: str | None = None) -> str:
    """Replays a day that all queries have passed, drawn by the date of the run; changes nothing."""
    connection = connect_started(lake)
    day = day_to_audit(connection.lake, logical_date.isoformat() if logical_date else str(run_id))
    if day is None:
        raise AirflowSkipException(f"no day of {connection.lake.root} is complete yet")
    begin, end = (datetime(one.year, one.month, one.day, tzinfo=UTC) for one in (day, day + timedelta(days=1)))
    return replay(connection, [f"--from={begin.isoformat()}", f"--to={end.isoformat()}"])


def day_to_audit(lake: Lake, seed: str) -> date | None:
    """A complete day with rows in gold, drawn by ``seed``; None if there is no such day.

    Each day has a number that depends on ``seed`` and on nothing else, and the one with the least is taken. So it is
    the same one when a retry finds a day more, unless that is the one.
    """
    watermarks = [
        report.watermark for report in read_reports(lake, [query.name for query in QUERIES if query.is_correctable])
    ]
    passed = [watermark for watermark in watermarks if watermark is not None]
    if not passed:
        return None
    last = (min(passed) - _SETTLED).astimezone(UTC).date()
    names = {name for table in (ATTRIBUTIONS, SESSIONS) for name in lake.files.names(table.path)}
    days = [date.fromisoformat(found[1]) for name in names if (found := _DATE.fullmatch(name))]
    complete = [day for day in days if day < last]
    return min(complete, key=lambda day: sha256(f"{seed} {day}".encode()).hexdigest(), default=None)
