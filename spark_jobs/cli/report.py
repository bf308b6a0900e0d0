"""``adloom report``: the overview page, with charts of the tables."""

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import typer
from rich.console import Console

from spark_jobs.cli.opening import session
from spark_jobs.cli.options import ConfigOption, LakeOption
from spark_jobs.cli.terminal import terminal
from spark_jobs.config.settings import load_settings
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_existing

if TYPE_CHECKING:
    from spark_jobs.spark.open_lake import OpenLake


app = typer.Typer()


@app.command(epilog="Example:  adloom report --lake s3a://ads/lake")
def report(location: LakeOption, config: ConfigOption = None) -> None:
    """Write a page of charts to the lake's reports.

    It shows clicks and click-through rates per campaign, delays, sessions and users, and late, duplicate and broken
    records.
    """
    console, settings = terminal(), load_settings(config, os.environ)
    lake = open_existing(location, settings.s3)
    with session(console, settings, lake) as opened:
        page = write_with_status(console, opened)
    print_overview(console, lake, page)


def write_with_status(console: Console, lake: "OpenLake", *, is_validated_next: bool = False) -> str:
    """Writes the page, as :func:`expectations.overview.page.write_overview` does, and shows a status meanwhile."""
    with console.status("drawing charts of the tables …"):
        # Importing it takes a second, and only this command needs it.
        from expectations.overview.page import write_overview

        return write_overview(lake, datetime.now(UTC), is_validated_next=is_validated_next)


def print_overview(console: Console, lake: Lake, page: str) -> None:
    """Prints the place of the page."""
    console.print(f"charts: {lake.shown(page)}", soft_wrap=True)
