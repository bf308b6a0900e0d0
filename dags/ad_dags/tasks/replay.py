"""Replays: a window that somebody asks for, and the random day of each night."""

import re
from datetime import UTC, date, datetime, timedelta
from hashlib import sha256
from typing import Any

from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from ad_dags.lakes import LakeRef
from ad_dags.place import Place
from ad_dags.programs import CommandError
from ad_dags.tasks.commands import run_adloom
from ad_dags.tasks.maintenance import place_of_started_lake
from spark_jobs.contracts.tables import ATTRIBUTIONS, SESSIONS
from spark_jobs.lake.layout import Lake
from spark_jobs.queries import QUERIES
from spark_jobs.runtime.reports import read_reports

RECOMPUTED = tuple(query.writes.name for query in QUERIES if query.correction)
"""The tables of gold that a replay knows."""
_DATE = re.compile(r"event_date=(\d{4}-\d{2}-\d{2})")
_UNEXPLAINED = "nothing explains why"
"""In what the command prints if rows differ, and it is not known why."""
_FAILED = 1
_SETTLED = timedelta(days=1)
"""How far all watermarks have passed a day that is audited: by then nothing of it is open."""


def replay_window(lake: LakeRef, params: dict[str, Any] | None = None) -> str:
    """Replays the window from ``params["from"]`` to ``params["to"]``; if ``apply``, puts in place what differs."""
    assert params is not None  # noqa: S101 Airflow passes it
    # Each is one word with its option, so that nothing typed into the form is ever read as an option.
    chosen = [f"--tables={','.join(params['tables'])}"] if params["tables"] else []
    apply = ["--apply"] if params["apply"] else []
    return _replay(place_of_started_lake(lake), [f"--from={params['from']}", f"--to={params['to']}", *chosen, *apply])


def audit_random_day(lake: LakeRef, logical_date: datetime | None = None, run_id: str | None = None) -> str:
    """Replays a day that all queries have passed, drawn by the date of the run; changes nothing."""
    place = place_of_started_lake(lake)
    day = day_to_audit(place.lake, logical_date.isoformat() if logical_date else str(run_id))
    if day is None:
        raise AirflowSkipException(f"no day of {place.lake.root} is complete yet")
    begin, end = (datetime(one.year, one.month, one.day, tzinfo=UTC) for one in (day, day + timedelta(days=1)))
    return _replay(place, [f"--from={begin.isoformat()}", f"--to={end.isoformat()}"])


def day_to_audit(lake: Lake, seed: str) -> date | None:
    """A complete day with rows in gold, drawn by ``seed``; None: there is none.

    Each day has a number that depends on ``seed`` and on nothing else, and the one with the least is taken. So it is
    the same one when a retry finds a day more, unless that is the one.
    """
    watermarks = [
        report.watermark for report in read_reports(lake, [query.name for query in QUERIES if query.correction])
    ]
    passed = [watermark for watermark in watermarks if watermark is not None]
    if not passed:
        return None
    last = (min(passed) - _SETTLED).astimezone(UTC).date()
    names = {name for table in (ATTRIBUTIONS, SESSIONS) for name in lake.files.names(table.path)}
    days = [date.fromisoformat(found[1]) for name in names if (found := _DATE.fullmatch(name))]
    complete = [day for day in days if day < last]
    return min(complete, key=lambda day: sha256(f"{seed} {day}".encode()).hexdigest(), default=None)


def _replay(place: Place, options: list[str]) -> str:
    code, output = run_adloom(place, ["replay"], options, allowed=(0, _FAILED), changes_lake=True)
    if code == _FAILED:
        lines = [line.strip() for line in output.splitlines() if line.strip()]
        if unexplained := [line for line in lines if _UNEXPLAINED in line]:
            # A retry would find the same.
            raise AirflowFailException(unexplained[-1])
        raise CommandError(lines[-1] if lines else "adloom replay printed nothing")
    return output
