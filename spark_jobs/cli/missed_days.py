"""``adloom missed-days``: days that were announced to a DAG of Airflow and got no run."""

import json
import os
import shlex
from collections.abc import Sequence
from datetime import UTC, datetime, time, timedelta
from typing import Annotated
from urllib.parse import quote

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from spark_jobs.cli.options import parse_date
from spark_jobs.cli.terminal import terminal, utc
from spark_jobs.config.secret_files import value_of
from spark_jobs.days.airflow_api import AirflowApi
from spark_jobs.days.missed import Consumer, MissedDay, missed_days
from spark_jobs.errors import SettingsError

app = typer.Typer()

_TOKEN = "ADLOOM_AIRFLOW_TOKEN"  # noqa: S105 the name of the variable
_LOOKED_BACK = timedelta(days=35)


@app.command(
    "missed-days",
    epilog="Example:  adloom missed-days --airflow http://localhost:8080 --dag bill_day   "
    "Exit code 1: a day has no run.",
)
def missed(
    airflow: Annotated[
        str,
        typer.Option(envvar="ADLOOM_AIRFLOW", help="Address of Airflow, as in http://localhost:8080.", metavar="URL"),
    ],
    dag: Annotated[
        str | None, typer.Option(help="Only this DAG; default: all that wait for days.", metavar="DAG")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(help="Days announced from this date (UTC) on; default: the last 35 days.", metavar="DATE"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, on one line.")] = False,
) -> None:
    """Show which announced days a DAG of Airflow has no run for: it was paused, or did not exist yet.

    Asks Airflow's REST API, with the token in ADLOOM_AIRFLOW_TOKEN, and starts nothing: for each day it prints the
    command that does. A failed run is a run; it is shown, so that somebody clears it. A restatement that came after
    the last run of its date has no run either. Announcements of the last five minutes are left out: Airflow may be
    about to start their runs.
    """
    now = datetime.now(UTC)
    begin = datetime.combine(parse_date(since, "--since"), time(), UTC) if since else now - _LOOKED_BACK
    api = AirflowApi(airflow, _token())
    consumers = _chosen(api.consumers(), dag)
    found = [
        day
        for consumer in consumers
        for day in missed_days(consumer, api.announcements(consumer, begin), api.runs(consumer, begin), now)
    ]
    console = terminal(is_uncut=True)
    if as_json:
        console.out(json.dumps([_plain(api, day) for day in found]), highlight=False)
    else:
        _print(console, api, found, begin, [consumer.dag_id for consumer in consumers])
    if not all(day.has_run for day in found):
        raise typer.Exit(1)


def _token() -> str:
    token = value_of(os.environ, _TOKEN)
    if not token:
        raise SettingsError(f"{_TOKEN} is not set; it is a token of Airflow's REST API, from POST /auth/token")
    return token


def _chosen(consumers: list[Consumer], dag: str | None) -> list[Consumer]:
    if dag is None:
        return consumers
    found = [consumer for consumer in consumers if consumer.dag_id == dag]
    if not found:
        names = ", ".join(consumer.dag_id for consumer in consumers) or "no DAG does"
        raise SettingsError(
            f"--dag {dag!r} does not wait for days, by a PartitionedAssetTimetable on their assets: {names}"
        )
    return found


def _print(console: Console, api: AirflowApi, days: Sequence[MissedDay], since: datetime, dags: Sequence[str]) -> None:
    if not days:
        names = ", ".join(dags) or "no DAG waits for days"
        console.print(f"every day announced since {utc(since)} has a run: {names}", soft_wrap=True)
        return
    table = Table(title=f"announced since {utc(since)}", title_justify="left", box=SIMPLE_HEAD)
    for name in ("DAG", "date", "announced at", "by", "last run"):
        table.add_column(name)
    for day in days:
        announced, own = day.announced, day.consumer
        dag = f"{own.dag_id} (paused)" if own.is_paused else own.dag_id
        table.add_row(dag, announced.key, utc(announced.at), announced.asset, _words(day))
    console.print(table)
    missing = [day for day in days if not day.has_run]
    if missing:
        console.print(f"{len(missing)} without a run; to start them:")
    for day in missing:
        console.print(_start(api, day), soft_wrap=True)


def _words(day: MissedDay) -> str:
    if day.run is None:
        return "none"
    return f"{day.run.state}: {day.run.run_id}" if day.has_run else f"before that: {day.run.run_id}"


def _start(api: AirflowApi, day: MissedDay) -> str:
    """The command that starts a run; ``airflow dags trigger`` takes no partition key.

    The shell itself prints the token, so that no list of processes shows it.
    """
    body = json.dumps({"logical_date": None, "partition_key": day.announced.key})
    url = f"{api.address.rstrip('/')}/api/v2/dags/{quote(day.consumer.dag_id, safe='')}/dagRuns"
    return (
        f'echo "Authorization: Bearer ${_TOKEN}" | '
        f"curl -sS -H @- -H 'Content-Type: application/json' -d {shlex.quote(body)} {shlex.quote(url)}"
    )


def _plain(api: AirflowApi, day: MissedDay) -> dict[str, str | bool | None]:
    return {
        "dag": day.consumer.dag_id,
        "paused": day.consumer.is_paused,
        "asset": day.announced.asset,
        "date": day.announced.key,
        "announced_at": utc(day.announced.at, "microseconds"),
        "run": day.run.run_id if day.run else None,
        "state": day.run.state if day.run and day.has_run else None,
        "start": None if day.has_run else _start(api, day),
    }
