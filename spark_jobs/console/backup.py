"""``adloom backup`` and ``adloom restore``: progress bars, then what was copied."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from spark_jobs.console.run import session
from spark_jobs.console.terminal import terminal, utc
from spark_jobs.contracts.settings import load_settings
from spark_jobs.jobs.backup import Backup, Report, back_up, put_back
from spark_jobs.queries import QUERIES
from spark_jobs.runtime.lakes import check_store, open_existing, open_lake


def take_backup(copy: str, location: str, *, config: Path | None) -> None:
    """Copies the lake at ``location`` to ``copy`` and prints what the copy holds.

    Raises:
        AdloomError: see :func:`spark_jobs.jobs.backup.back_up`.
    """
    settings, console = load_settings(config, os.environ), terminal()
    lake, target = open_existing(location, settings.s3), open_lake(copy, settings.s3)
    with _bars() as report:
        done = back_up(lake, target, settings.s3, now=datetime.now(UTC), report=report)
    _print(console, done)
    console.print(f"restore it with: adloom restore {copy} --lake NEW", soft_wrap=True)


def restore_lake(copy: str, location: str, *, source: Path | None, config: Path | None) -> None:
    """Makes a lake at ``location`` of the backup at ``copy``.

    Raises:
        AdloomError: see :func:`spark_jobs.jobs.backup.put_back` and :func:`spark_jobs.jobs.reset.reset`.
    """
    from spark_jobs.jobs.reset import reset

    settings, console = load_settings(config, os.environ), terminal()
    held, lake = open_lake(copy, settings.s3), open_lake(location, settings.s3)
    check_store(lake)
    with _bars() as report:
        done = put_back(held, lake, report=report)
    _print(console, done)
    with session(console, settings, lake) as spark:
        for query in QUERIES:
            if query.writes.name in done.tables:
                with console.status(f"making a checkpoint for {query.name} …"):
                    made = reset(spark, settings, lake, query.name, source)
                console.print(
                    f"{query.name}: goes on where {query.writes.name} ends, with {made.open_events:,} open events"
                )
    console.print(f"{lake.place()} is restored as of {utc(done.taken_at)}; start its jobs", soft_wrap=True)


@contextmanager
def _bars() -> Iterator[Report]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=terminal(stderr=True)) as progress:
        tasks: dict[str, TaskID] = {}

        def report(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = progress.add_task(what, total=total)
            progress.update(tasks[what], completed=done)

        yield report


def _print(console: Console, backup: Backup) -> None:
    tables = ", ".join(f"{name} {version}" for name, version in sorted(backup.tables.items()))
    console.print(f"tables by version: {tables or 'none'}", soft_wrap=True)
