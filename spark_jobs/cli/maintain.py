"""``adloom maintain``: compacts and cleans up tables, and prints what was done to each."""

import os
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from spark_jobs.cli.opening import session
from spark_jobs.cli.options import ConfigOption, LakeOption
from spark_jobs.cli.terminal import terminal
from spark_jobs.config.settings import load_settings
from spark_jobs.lake.open import open_existing
from spark_jobs.queries.registry import MAINTAINED_TABLES, find_table

if TYPE_CHECKING:
    from spark_jobs.operations.maintain import Care

app = typer.Typer()


@app.command(
    epilog="Example:  adloom maintain attributions sessions --lake lake   Exit code 1 if a table was skipped because "
    "another command is rewriting it.",
)
def maintain(
    location: LakeOption,
    table: Annotated[
        list[str] | None,
        typer.Argument(help=f"Only these, of {', '.join(MAINTAINED_TABLES)}.", metavar="TABLE"),
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Compact small files, but remove none.")] = False,
    config: ConfigOption = None,
) -> None:
    """Compact small files of tables and remove files that no reader needs any more, while jobs run. No row changes."""
    from spark_jobs.operations.maintain import maintain as compact

    tables = [find_table(name) for name in table or []] or list(MAINTAINED_TABLES.values())
    console, settings = terminal(), load_settings(config, os.environ)
    lake = open_existing(location, settings.s3)
    done: list[Care] = []
    with session(console, settings, lake) as opened, console.status("maintaining the tables …") as status:
        for care in compact(opened, tables, remove=not keep):
            done.append(care)
            status.update(f"{care.table} done …")
    _print(console, done, lake.shown())
    if any(care.skipped for care in done):
        raise typer.Exit(1)


def _print(console: Console, done: "list[Care]", place: str) -> None:
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
