"""``adloom backup`` and ``adloom restore``: progress bars, then what was copied."""

import os
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from spark_jobs.cli.opening import session
from spark_jobs.cli.options import ConfigOption, LakeOption
from spark_jobs.cli.terminal import terminal, utc
from spark_jobs.config.settings import load_settings
from spark_jobs.lake.open import check_store, open_existing, open_lake
from spark_jobs.queries.registry import QUERIES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spark_jobs.operations.backup import Backup, Report

app = typer.Typer()
_Copy = Annotated[str, typer.Argument(help="Where the copy is: a folder or s3a://bucket/prefix.", metavar="COPY")]


@app.command(
    epilog="Example:  adloom backup s3a://backups/ads --lake s3a://ads/lake   Again, and only what is new is copied.",
)
def backup(copy: _Copy, location: LakeOption, config: ConfigOption = None) -> None:
    """Copy a lake, while its jobs run, so that `adloom restore` can make a lake of it again.

    The copy has all tables at versions that belong together, and what else is not computed from them. Kafka must keep
    what comes after it for as long as you may want to restore it.
    """
    from spark_jobs.operations.backup import back_up

    settings, console = load_settings(config, os.environ), terminal()
    lake, target = open_existing(location, settings.s3), open_lake(copy, settings.s3)
    with _bars() as report:
        done = back_up(lake, target, settings.s3, now=datetime.now(UTC), report=report)
    _print(console, done)
    console.print(f"restore it with: adloom restore {copy} --lake NEW", soft_wrap=True)


@app.command(
    epilog="Example:  adloom restore s3a://backups/ads --lake s3a://ads/lake-2   Then start the jobs.",
)
def restore(
    copy: _Copy,
    location: LakeOption,
    source: Annotated[
        Path | None,
        typer.Option(help="The folder of files that the lake was fed from, if it was not Kafka.", metavar="DIR"),
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Make a lake of a copy: the tables, and checkpoints that go on where they end.

    The lake must be a new, empty place. No row is lost or repeated, provided that Kafka still holds what came after the
    copy was taken.
    """
    from spark_jobs.operations.backup import put_back
    from spark_jobs.streams.reset import reset

    settings, console = load_settings(config, os.environ), terminal()
    held, lake = open_lake(copy, settings.s3), open_lake(location, settings.s3)
    check_store(lake)
    with _bars() as report:
        done = put_back(held, lake, report=report)
    _print(console, done)
    with session(console, settings, lake) as opened:
        for query in QUERIES:
            if query.writes.name in done.tables:
                with console.status(f"making a checkpoint for {query.name} …"):
                    made = reset(opened, query.name, source)
                console.print(
                    f"{query.name}: goes on where {query.writes.name} ends, with {made.open_events:,} open events"
                )
    console.print(f"{lake.shown()} is restored as of {utc(done.taken_at)}; start its jobs", soft_wrap=True)


@contextmanager
def _bars() -> "Iterator[Report]":
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=terminal(stderr=True)) as progress:
        tasks: dict[str, TaskID] = {}

        def report(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = progress.add_task(what, total=total)
            progress.update(tasks[what], completed=done)

        yield report


def _print(console: Console, backup: "Backup") -> None:
    tables = ", ".join(f"{name} {version}" for name, version in sorted(backup.tables.items()))
    console.print(f"tables by version: {tables or 'none'}", soft_wrap=True)
