"""``adloom backfill``: a recomputed window, and how the live tables differ from it."""

import json
import os
from datetime import datetime
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from spark_jobs.console.run import session
from spark_jobs.console.terminal import terminal, utc
from spark_jobs.contracts.backfill import Difference, Window
from spark_jobs.contracts.settings import load_settings
from spark_jobs.jobs.backfill import Comparison, backfill
from spark_jobs.lake.layout import Lake
from spark_jobs.runtime.lakes import open_existing

_STYLES = {
    Difference.SAME: "green",
    Difference.OPEN: "dim",
    Difference.CHANGED: "yellow",
    Difference.ONLY_LIVE: "red",
    Difference.ONLY_RECOMPUTED: "red",
}


def backfill_window(begin: datetime, end: datetime, location: str, config: Path | None) -> None:
    """Recomputes the window and prints how many rows differ, the first of them, and where all of them are stored.

    Raises:
        SettingsError: the window is invalid.
        LakeError: there is no lake, or one of its tables is missing.
    """
    console, settings, window = terminal(), load_settings(config, os.environ), Window(begin, end)
    lake = open_existing(location, settings.s3)
    with session(console, settings, lake) as spark, console.status("reading bronze …") as status:
        found = backfill(spark, settings, lake, window, on_progress=lambda line: status.update(f"{line} …"))
    _print_counts(console, window, found)
    for comparison in found:
        _print_rows(console, lake, comparison)


def _print_counts(console: Console, window: Window, found: list[Comparison]) -> None:
    table = Table(
        title=f"{utc(window.begin)} to {utc(window.end)}, live and recomputed",
        title_justify="left",
        box=SIMPLE_HEAD,
        caption="open: the live job has not reached these rows yet",
        caption_justify="left",
    )
    table.add_column("rows")
    for kind in Difference:
        table.add_column(kind.value, justify="right")
    for comparison in found:
        cells = [
            Text(f"{count:,}", style=_STYLES[kind] if count else "dim") for kind, count in comparison.counts.items()
        ]
        table.add_row(comparison.table.name, *cells)
    console.print(table)


def _print_rows(console: Console, lake: Lake, comparison: Comparison) -> None:
    name = comparison.table.name
    if not comparison.differing:
        console.print(f"{name}: no row differs", style="green")
    for kind, columns, live, recomputed in comparison.first:
        console.print(Text(f"{name}: {kind.value}", style=_STYLES[kind]))
        for what, row in (("live      ", live), ("recomputed", recomputed)):
            if row is not None:
                console.print(f"  {what}  {_row(row, columns)}", soft_wrap=True, markup=False)
    if comparison.differing > len(comparison.first):
        console.print(f"{name}: {comparison.differing - len(comparison.first):,} more differ")
    places = f"{lake.place(comparison.recomputed)}   comparison: {lake.place(comparison.differences)}"
    console.print(f"{name}: recomputed rows: {places}", soft_wrap=True)


def _row(text: str, columns: list[str]) -> str:
    """The columns that differ if both sides have the row, else the whole row except its list of events."""
    row = json.loads(text)
    if columns:
        return ", ".join(f"{name}={row.get(name)!r}" for name in columns)
    return ", ".join(f"{name}={value!r}" for name, value in row.items() if name != "events")
