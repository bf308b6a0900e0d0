"""``adloom ledger``: where every record went."""

import os
from collections import defaultdict
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from spark_jobs.cli.options import ConfigOption, LakeOption
from spark_jobs.cli.terminal import terminal
from spark_jobs.config.durations import EPOCH, time_of_us
from spark_jobs.config.settings import load_settings
from spark_jobs.errors import LakeError, SettingsError
from spark_jobs.lake.open import open_existing
from spark_jobs.ledger.model import DUPLICATES, LATE_KINDS, RECORDS, Ledger, RecordKind

if TYPE_CHECKING:
    from spark_jobs.ledger.ledger_files import Row

app = typer.Typer()


class _By(StrEnum):
    HOUR = "hour"
    SOURCE = "source"


_COLUMNS: dict[str, tuple[RecordKind, ...]] = {
    "received": (RecordKind.RECEIVED,),
    "quarantined": (RecordKind.QUARANTINED,),
    "ok": (RecordKind.OK,),
    "kept": (RecordKind.KEPT,),
    "duplicates": DUPLICATES,
    "late": LATE_KINDS,
    "unaccounted": (RecordKind.UNACCOUNTED,),
}
"""The columns of a table of records by hour or source."""


@app.command(
    epilog="Examples:  adloom ledger --lake lake   |   adloom ledger --lake lake --by hour   "
    "Exit code 1 if the account does not balance. Jobs may keep running.",
)
def ledger(
    location: LakeOption,
    update: Annotated[
        bool, typer.Option("--update/--no-update", help="Bring the account up to now, or show it as it was last taken.")
    ] = True,
    by: Annotated[
        _By | None, typer.Option(help="Show records by hour of event time, or by source.", metavar="hour|source")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    restart: Annotated[bool, typer.Option("--restart", help="Count everything again from the first commit.")] = False,
    from_now: Annotated[
        bool,
        typer.Option("--from-now", help="Begin again, with what comes from now on."),
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Show where every record went: the account of a lake, kept while its jobs run.

    Each record received is in quarantine, kept, a duplicate, or late, and each event that was kept is in gold, pending
    or late there. The account covers versions of the tables that belong together and must balance to the row. Spark is
    not started: only what is new since the last time is read, from the tables' logs and files.
    """
    from spark_jobs.ledger.ledger_files import last_ledger, rows_of
    from spark_jobs.ledger.update import update_ledger

    if restart and from_now:
        raise SettingsError("--restart counts everything and --from-now nothing that is there: give one of them")
    settings = load_settings(config, os.environ)
    lake = open_existing(location, settings.s3)
    ledger = update_ledger(lake, settings, restart=restart, from_now=from_now) if update else last_ledger(lake)
    if ledger is None:
        raise LakeError(f"{lake.shown()} has no ledger yet; run `adloom ledger` without --no-update")
    console = terminal(is_uncut=True)
    if as_json:
        console.print_json(ledger.model_dump_json(include={"number", "taken_at", "bronze", "silver", "figures"}))
        _end(ledger)
        return
    if by is None:
        print_account(console, ledger, lake.shown())
    else:
        console.print(_headline(ledger, lake.shown()), soft_wrap=True)
        _print_by(console, rows_of(lake, ledger), by)
    _end(ledger)


def print_account(console: Console, ledger: Ledger, place: str) -> None:
    """Prints where the records of the lake at ``place`` went."""
    console.print(_headline(ledger, place), soft_wrap=True)
    _print_records(console, ledger)
    _print_queries(console, ledger)


def _end(ledger: Ledger) -> None:
    if not ledger.balances:
        raise typer.Exit(1)


def _headline(ledger: Ledger, place: str) -> str:
    upto = (
        f"{place} up to version {ledger.bronze} of bronze and {ledger.silver} of silver, taken at "
        f"{ledger.taken_at:%Y-%m-%d %H:%M:%S} UTC"
    )
    if ledger.since_us is not None:
        upto += f"; it counts from {time_of_us(ledger.since_us):%Y-%m-%d %H:%M} UTC on"
    if ledger.balances:
        return f"balances to the row: {upto}"
    return f"DOES NOT BALANCE: {', '.join(ledger.wrong)}; {upto}"


def _table(title: str, *headings: str) -> Table:
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    table.add_column(headings[0])
    for heading in headings[1:]:
        table.add_column(heading, justify="right")
    return table


def _print_records(console: Console, ledger: Ledger) -> None:
    table = _table("records", "", "rows")
    held = f", in {ledger.records:,} records" if ledger.records < ledger.received else ""
    table.add_row(f"received{held}", f"{ledger.received:,}")
    table.add_row("  quarantined", f"{ledger.total_quarantined:,}")
    for verdict, rows in sorted(ledger.quarantined.items(), key=lambda item: -item[1]):
        table.add_row(f"    {verdict}", f"{rows:,}")
    requeued = ledger.requeued
    table.add_row("  ok" + (f", {requeued:,} of them requeued" if requeued else ""), f"{ledger.ok:,}")
    table.add_row("    kept", f"{ledger.kept:,}")
    table.add_row("    duplicates", f"{ledger.rows(RecordKind.DUPLICATE):,}")
    for kind in (RecordKind.UNPROVED, RecordKind.HELD, *LATE_KINDS, RecordKind.UNACCOUNTED):
        if rows := ledger.rows(kind):
            table.add_row(f"    {kind.value}", f"{rows:,}")
    if surplus := ledger.rows(RecordKind.SURPLUS):
        table.add_row("rows of silver without a record", f"{surplus:,}")
    console.print(table)


def _print_queries(console: Console, ledger: Ledger) -> None:
    if not ledger.accounts:
        return
    kinds = (
        RecordKind.READ,
        RecordKind.INITIAL,
        RecordKind.USERLESS,
        RecordKind.PENDING,
        RecordKind.LATE,
        RecordKind.UNACCOUNTED,
        RecordKind.SURPLUS,
    )
    shown = [kind for kind in kinds if any(ledger.rows(kind, account=name) for name in ledger.accounts)]
    table = _table("events of silver in each query", "query", *[kind.value for kind in shown])
    for name in ledger.accounts:
        table.add_row(name, *[f"{ledger.rows(kind, account=name):,}" for kind in shown])
    console.print(table)


def _print_by(console: Console, rows: "list[Row]", by: str) -> None:
    sums: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(_COLUMNS, 0))
    for row in rows:
        for column, kinds in _COLUMNS.items():
            if row.account == RECORDS and RecordKind(row.kind) in kinds:
                sums[_hour(row.hour) if by == "hour" else row.source or "(none)"][column] += row.rows
    table = _table(f"records by {by}", by, *_COLUMNS)
    for label, counts in sorted(sums.items()):
        table.add_row(label, *[f"{counts[column]:,}" for column in _COLUMNS])
    console.print(table)


def _hour(hour: int | None) -> str:
    return "(no time)" if hour is None else f"{EPOCH + timedelta(hours=hour):%Y-%m-%d %H:00}"
