"""``adloom requeue``: what the present settings make of the records in quarantine, and what was requeued."""

import os
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from spark_jobs.cli.opening import session
from spark_jobs.cli.options import ConfigOption, LakeOption, parse_time
from spark_jobs.cli.terminal import terminal, utc
from spark_jobs.config.settings import load_settings
from spark_jobs.ingest.requeue_model import JudgedRecords, Requeued, Selection
from spark_jobs.lake.open import open_existing
from spark_jobs.printable import printable

app = typer.Typer()


_LONGEST_REASON = 100


@app.command(
    epilog="Examples:  adloom requeue --lake lake --config adloom.toml --dry-run   |   "
    "adloom requeue --lake lake --config adloom.toml --source ads   |   "
    "adloom requeue --lake lake --config adloom.toml --verdict invalid_event_time --since 2026-03-01T00:00:00Z",
)
def requeue(
    location: LakeOption,
    verdict: Annotated[
        list[str] | None,
        typer.Option(
            help="Only records with this verdict; may be given several times. Default: all. Name "
            "event_time_in_future to judge such records against the current time.",
            metavar="VERDICT",
            show_default=False,
        ),
    ] = None,
    since: Annotated[
        str | None, typer.Option(help="Only records that reached bronze then or later, with offset or Z.", metavar="T")
    ] = None,
    until: Annotated[
        str | None, typer.Option(help="Only records that reached bronze before, with offset or Z.", metavar="T")
    ] = None,
    source: Annotated[
        str | None, typer.Option(help="Only records of this source of the settings.", metavar="NAME")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be requeued, and write nothing.")
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Judge the records in quarantine again by the current settings, and let those that fit now flow on, once.

    A wrong mapping sends good records to the quarantine. Correct the settings, look with --dry-run, then requeue: each
    record that fits is appended to bronze again with the verdict ok, and goes on to silver and gold. The others stay;
    the table says what they break now. Jobs may keep running. A requeue adds all of its rows in one commit or none, and
    running it again adds only what is missing. Events that lie behind the watermark by now are late, and are counted.
    """
    from spark_jobs.ingest.requeue import requeue as append_again

    selection = Selection(
        tuple(verdict or ()),
        parse_time(since, "--since") if since else None,
        parse_time(until, "--until") if until else None,
        source,
    )
    console, settings = terminal(is_uncut=True), load_settings(config, os.environ)
    selection.check(settings.sources)
    lake = open_existing(location, settings.s3)
    with session(console, settings, lake) as opened, console.status("opening the lake …") as status:

        def show(step: str) -> None:
            status.update(f"{step} …")

        found = append_again(opened, selection, dry_run=dry_run, on_step=show)
    if not found.looked_at:
        console.print(f"nothing to requeue: the quarantine of {lake.shown()} holds no such record", soft_wrap=True)
        return
    _print_table(console, found, lake.shown())
    _print_outcome(console, found, dry_run=dry_run)


def _print_table(console: Console, found: Requeued, place: str) -> None:
    table = Table(title=f"{place}: quarantine, judged by the present settings", title_justify="left", box=SIMPLE_HEAD)
    table.add_column("source")
    table.add_column("verdict then", no_wrap=True)
    table.add_column("verdict now", no_wrap=True)
    table.add_column("records", justify="right")
    table.add_column("too late for silver", justify="right")
    table.add_column("one reason, if it does not fit", overflow="fold")
    for one in found.judged:
        table.add_row(
            one.source or "none",
            one.before,
            Text(one.now, style="green" if one.fits else "red"),
            f"{one.records:,}",
            f"{one.late:,}" if one.fits else "",
            _shortened(one),
        )
    console.print(table)


def _shortened(one: JudgedRecords) -> Text:
    reason = one.reason if len(one.reason) <= _LONGEST_REASON else f"{one.reason[: _LONGEST_REASON - 1]}…"
    return Text(printable(reason), style="dim")


def _print_outcome(console: Console, found: Requeued, *, dry_run: bool) -> None:
    counts = f"looked at {found.looked_at:,} records: {found.fit:,} fit now, {found.looked_at - found.fit:,} do not"
    console.print(counts)
    if late := sum(one.late for one in found.judged):
        console.print(
            f"{late:,} of those that fit lie behind the watermark of deduplicate at present: the ledger will count "
            "them as late, and silver will not have them",
            soft_wrap=True,
        )
    if dry_run:
        console.print("dry run: nothing was written")
    elif found.at is None:
        console.print("nothing was requeued")
    else:
        console.print(
            f"requeued {found.fit:,} records at {utc(found.at, 'microseconds')}; a running job deduplicate takes them "
            f"next, and so does the next run or drain of the lake",
            soft_wrap=True,
        )
