"""``adloom days``: a grid of tables and dates, in the colors of their status."""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import date, datetime, timedelta
from pathlib import Path

from pyspark.sql import SparkSession
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from spark_jobs.console.run import session
from spark_jobs.console.terminal import terminal, utc
from spark_jobs.contracts.days import Day, DayStatus
from spark_jobs.contracts.settings import load_settings
from spark_jobs.jobs.days import update_days
from spark_jobs.lake.days import read_days
from spark_jobs.runtime.lakes import open_existing

_SHOWN = timedelta(days=13)
"""From the first to the last day shown if nothing else is asked for."""
_STYLES = {
    DayStatus.OPEN: "dim",
    DayStatus.COMPLETE: "green",
    DayStatus.AUDITED: "bold green",
    DayStatus.RESTATED: "bold yellow",
    DayStatus.FROZEN: "blue",
}


def show_days(
    location: str, *, since: date | None, until: date | None, update: bool, as_json: bool, config: Path | None
) -> None:
    """Prints the days of the lake at ``location``, those from ``since`` to ``until``; brings them up to date first.

    Args:
        location: of the lake.
        since: the first date shown; None: two weeks before the last, or with ``as_json`` the first that there is.
        until: the last date shown; None: the last that there is.
        update: whether to bring ``gold/days`` up to date first.
        as_json: print JSON instead of the grid.
        config: the file of settings.

    Raises:
        SettingsError: the settings are wrong.
        LakeError: there is no lake, or ``gold/days`` cannot be read.
        LakeInUseError: another process is updating ``gold/days``.
    """
    settings = load_settings(config, os.environ)
    console, lake = terminal(is_uncut=True), open_existing(location, settings.s3)
    errors = terminal(stderr=True)

    @contextmanager
    def start_spark() -> Iterator[SparkSession]:
        with session(errors, settings, lake) as spark, errors.status("looking at what has changed …"):
            yield spark

    days = update_days(lake, settings, start_spark) if update else read_days(lake)
    last = until or max((day.event_date for day in days), default=date.min)
    first = since or (date.min if as_json or not days else last - _SHOWN)
    chosen = [day for day in days if first <= day.event_date <= last]
    if as_json:
        console.out(json.dumps([_plain(day) for day in chosen]), highlight=False)
    elif not chosen:
        console.print(f"no days in {lake.place()}: {_why_none(days)}", soft_wrap=True)
    else:
        _print_grid(console, chosen, lake.place())


def _why_none(days: Sequence[Day]) -> str:
    if not days:
        return "its tables of gold hold no batch yet, or gold/days was never updated"
    return f"they run from {days[0].event_date} to {max(day.event_date for day in days)}"


def _plain(day: Day) -> dict[str, str | int | None]:
    """``day`` with its times as text."""
    plain: dict[str, str | int | None] = {}
    for name, value in asdict(day).items():
        plain[name] = utc(value, "microseconds") if isinstance(value, datetime) else value
    return plain | {"event_date": day.event_date.isoformat(), "status": day.status.value}


def _print_grid(console: Console, days: Sequence[Day], place: str) -> None:
    tables = list(dict.fromkeys(day.table_name for day in days))
    known = {day.key: day for day in days}
    grid = Table(title=f"{place}: days (UTC)", title_justify="left", box=SIMPLE_HEAD)
    grid.add_column("date")
    for name in tables:
        grid.add_column(name)
    for day in sorted({day.event_date for day in days}):
        grid.add_row(day.isoformat(), *[_cell(known.get((name, day))) for name in tables])
    console.print(grid)
    restated = [day for day in days if day.restated]
    if restated:
        rows = sum(day.changes for day in restated)
        console.print(
            f"{len(restated)} of these days changed after they were complete, {rows:,} rows; the number says how "
            "often. Each change is in gold/restatements: `adloom show restatements`",
            soft_wrap=True,
        )


def _cell(day: Day | None) -> Text:
    if day is None:
        return Text("")
    times = f" ({day.restated})" if day.restated and day.status is not DayStatus.RESTATED else ""
    return Text(f"{day.words}{times}", style=_STYLES[day.status])
