"""``adloom replay``: how a window of gold differs from what bronze says, and what was put in place."""

import json
import os
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from spark_jobs.cli.opening import session
from spark_jobs.cli.options import ConfigOption, LakeOption, parse_time
from spark_jobs.cli.terminal import terminal, utc
from spark_jobs.config.durations import Window
from spark_jobs.config.settings import load_settings
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_existing
from spark_jobs.restatements.replay_model import page_key, replay_key

if TYPE_CHECKING:
    from spark_jobs.restatements.replay import Replayed
    from spark_jobs.restatements.replay_report import Differing

app = typer.Typer()


_STYLES = {"same": "green", "late": "yellow", "open": "dim", "unknown": "red"}


@app.command(
    epilog="Example:  adloom replay --from 2026-03-01T00:00:00Z --to 2026-03-02T00:00:00Z --lake s3a://ads/lake   "
    "Exit code 1 if rows differ that nothing explains, unless they were put in place.",
)
def replay(
    begin: Annotated[str, typer.Option("--from", help="Start of the window, with offset or Z.", metavar="T")],
    end: Annotated[str, typer.Option("--to", help="End of the window, exclusive.", metavar="T")],
    location: LakeOption,
    tables: Annotated[
        str, typer.Option(help="Only these tables of gold, as in attributions,sessions; default: all.", metavar="NAMES")
    ] = "",
    apply: Annotated[
        bool, typer.Option("--apply", help="Put in place what differs; each change is recorded in gold/restatements.")
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Recompute a past window of gold from bronze, compare it with the live tables, and if wanted put it in place.

    A row that differs is late if an event came too late for it, and a repair will bring that in; open if the live
    query may still change it; and otherwise unknown: somebody changed a table, or adloom has a bug. Open rows are never
    touched. Jobs may keep running. A replay that was killed while it put rows in place is completed by the next repair
    or replay.
    """
    chosen = tuple(name.strip() for name in tables.split(",") if name.strip())
    is_explained = replay_window(
        parse_time(begin, "--from"), parse_time(end, "--to"), location, chosen, is_applied=apply, config=config
    )
    if not is_explained:
        raise typer.Exit(1)


def replay_window(
    begin: datetime, end: datetime, location: str, tables: tuple[str, ...], *, is_applied: bool, config: Path | None
) -> bool:
    """Replays the window, writes the report and prints it.

    Returns:
        Whether every row that differs is explained or was put in place.

    Raises:
        SettingsError: the window is invalid, or no such table is recomputed.
        LakeError: there is no lake, or it was changed in each attempt.
        LakeInUseError: a repair or another replay is at work.
    """
    from spark_jobs.restatements.replay import replay as recompute

    console, settings, window = terminal(is_uncut=True), load_settings(config, os.environ), Window(begin, end)
    lake = open_existing(location, settings.s3)
    with session(console, settings, lake) as opened, console.status("opening the lake …") as status:
        found = recompute(
            opened,
            window,
            tables=tables,
            is_applied=is_applied,
            on_step=lambda step: status.update(f"{step} …"),
        )
    _write_page(lake, window, tables, found)
    _print_counts(console, window, found)
    for name, rows in found.first.items():
        _print_rows(console, name, rows, found)
    _print_outcome(console, lake, window, tables, found)
    return not found.report.unknown or found.plan is not None


def _write_page(lake: Lake, window: Window, tables: tuple[str, ...], found: "Replayed") -> None:
    # Only this command needs it, and importing it takes a second.
    from expectations.replayed.page import render

    lake.files.write(page_key(window, tables), render(lake, found).encode())


def _print_counts(console: Console, window: Window, found: "Replayed") -> None:
    # Not as the title of the table, which would be as narrow as the table.
    console.print(f"{utc(window.begin)} to {utc(window.end)}, live and recomputed")
    table = Table(box=SIMPLE_HEAD)
    table.add_column("table")
    for kind in _STYLES:
        table.add_column(kind, justify="right")
    for name, part in found.report.tables.items():
        counts = {kind: getattr(part, kind) for kind in _STYLES}
        cells = [Text(f"{count:,}", style=_STYLES[kind] if count else "dim") for kind, count in counts.items()]
        table.add_row(name, *cells)
    console.print(table)


def _print_rows(console: Console, name: str, rows: "list[Differing]", found: "Replayed") -> None:
    part = found.report.tables[name]
    for row in rows:
        kind = "late" if row.is_late else "unknown"
        console.print(Text(f"{name}: {kind}, {row.outcome_word}: {row.row_key}", style=_STYLES[kind]), soft_wrap=True)
        for what, text in (("is       ", row.before), ("should be", row.after)):
            if text is not None:
                console.print(f"  {what}  {_shown(text, row.columns)}", soft_wrap=True)
    if (differing := part.late + part.unknown) > len(rows):
        console.print(f"{name}: {differing - len(rows):,} more differ")
    for campaign, one in part.campaigns.items():
        money = f"{one.impressions:+,} impressions, {one.clicks:+,} clicks, cost {one.cost_micros / 10**6:+,.6f}"
        console.print(f"{name}: campaign {campaign or '(none)'} should have {money}", soft_wrap=True)


def _shown(text: str, columns: list[str]) -> str:
    """The columns that differ if both sides have the row, else the whole row but its list of events."""
    row = json.loads(text)
    return ", ".join(f"{name}={row.get(name)!r}" for name in columns or [one for one in row if one != "events"])


def _print_outcome(console: Console, lake: Lake, window: Window, tables: tuple[str, ...], found: "Replayed") -> None:
    report = found.report
    if found.plan is not None:
        changes, frozen = found.plan.changes, sum(part.frozen for part in found.plan.tables.values())
        console.print(f"put in place: {changes:,} rows in or out; each is in gold/restatements", soft_wrap=True)
        if frozen:
            console.print(f"{frozen:,} rows are older than repair.freeze_after: recorded, and left as they are")
    elif report.audited:
        console.print("every row is as it should be", style="green")
    elif report.unknown:
        console.print(
            f"{report.unknown:,} rows differ and nothing explains why: somebody changed a table, or adloom has a bug",
            style="red",
            soft_wrap=True,
        )
    console.print(f"report: {lake.shown(page_key(window, tables))}", soft_wrap=True)
    console.print(f"as JSON: {lake.shown(replay_key(window, tables))}", soft_wrap=True)
