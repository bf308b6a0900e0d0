"""``adloom maintain``: compacts and cleans up tables, and prints what was done to each."""

import os
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from spark_jobs.console.run import session
from spark_jobs.console.terminal import terminal
from spark_jobs.contracts.settings import load_settings
from spark_jobs.jobs.maintain import Care, maintain
from spark_jobs.queries import MAINTAINED_TABLES, find_table
from spark_jobs.runtime.lakes import open_existing


def maintain_tables(names: list[str], location: str, *, remove: bool, config: Path | None) -> bool:
    """Maintains the tables ``names`` (by default all) of the lake at ``location`` and prints what was done.

    Returns:
        False if a table was skipped because its writer is at work, else True.

    Raises:
        SettingsError: there is no table with that name.
        LakeError: there is no lake.
    """
    tables = [find_table(name) for name in names] or list(MAINTAINED_TABLES.values())
    console, settings = terminal(), load_settings(config, os.environ)
    lake = open_existing(location, settings.s3)
    done: list[Care] = []
    with session(console, settings, lake) as spark, console.status("maintaining the tables …") as status:
        for care in maintain(spark, settings, lake, tables, remove=remove):
            done.append(care)
            status.update(f"{care.table} done …")
    _print(console, done, lake.place())
    return not any(care.skipped for care in done)


def _print(console: Console, done: list[Care], place: str) -> None:
    table = Table(box=SIMPLE_HEAD, title=f"{place}: tables", title_justify="left")
    table.add_column("table")
    for heading in ("files compacted", "into", "files removed", "MB freed"):
        table.add_column(heading, justify="right")
    for care in done:
        numbers = (care.files_joined, care.files_made, care.files_removed)
        cells = [f"{number:,}" for number in numbers] + [f"{care.bytes_removed / 1e6:,.1f}"]
        table.add_row(care.table, *([""] * len(cells) if care.skipped else cells))
    console.print(table)
    for care in done:
        if why := care.skipped or care.not_removed:
            what = "skipped" if care.skipped else "nothing removed"
            console.print(f"{care.table}: {what}: {why}", soft_wrap=True)
