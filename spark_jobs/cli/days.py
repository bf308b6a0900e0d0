"""``adloom days``: a grid of tables and dates, in the colors of their status."""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from spark_jobs.cli.opening import session
from spark_jobs.cli.options import ConfigOption, LakeOption, parse_date
from spark_jobs.cli.terminal import terminal, utc
from spark_jobs.config.settings import load_settings
from spark_jobs.days.day import Day, DayStatus, read_days
from spark_jobs.lake.open import open_existing

if TYPE_CHECKING:
    from spark_jobs.spark.open_lake import OpenLake


app = typer.Typer()


_SHOWN = timedelta(days=13)
"""From the first to the last day shown if nothing else is asked for."""
_STYLES = {
    DayStatus.OPEN: "dim",
    DayStatus.COMPLETE: "green",
    DayStatus.AUDITED: "bold green",
    DayStatus.RESTATED: "bold yellow",
    DayStatus.FROZEN: "blue",
}


@app.command(
    epilog="Examples:  adloom days --lake lake --config adloom.toml   |   "
    "adloom days --lake lake --from 2026-03-01 --to 2026-03-31 --no-update --json",
)
def days(
    location: LakeOption,
    begin: Annotated[
        str | None,
        typer.Option("--from", help="Show days from this date on; default: the last 14 days.", metavar="DATE"),
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", help="Show days up to this date, included.", metavar="DATE")
    ] = None,
    update: Annotated[bool, typer.Option(help="First bring gold/days up to date.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print the rows of gold/days as JSON, on one line.")] = False,
    config: ConfigOption = None,
) -> None:
    """Show for each table of gold which days are done: open, complete, audited, restated or frozen.

    A day is complete when nothing that is still on time can change its rows; after that only repairs and replays do,
    and they are counted. The answer is kept in gold/days. Jobs may keep running; Spark starts only if something has
    changed.
    """
    from spark_jobs.days.update import update_days

    since = parse_date(begin, "--from") if begin else None
    until = parse_date(end, "--to") if end else None
    settings = load_settings(config, os.environ)
    console, lake = terminal(is_uncut=True), open_existing(location, settings.s3)
    errors = terminal(stderr=True)

    @contextmanager
    def start_spark() -> "Iterator[OpenLake]":
        with session(errors, settings, lake) as opened, errors.status("looking at what has changed …"):
            yield opened

    found = update_days(lake, settings, start_spark) if update else read_days(lake)
    last = until or max((day.event_date for day in found), default=date.min)
    first = since or (date.min if as_json or not found else last - _SHOWN)
    chosen = [day for day in found if first <= day.event_date <= last]
    if as_json:
        console.out(json.dumps([_plain(day) for day in chosen]), highlight=False)
    elif not chosen:
        console.print(f"no days in {lake.shown()}: {_why_none(found)}", soft_wrap=True)
    else:
        _print_grid(console, chosen, lake.shown())


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
    grid = Table(title=f"{place}: days ({days[0].zone})", title_justify="left", box=SIMPLE_HEAD)
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
