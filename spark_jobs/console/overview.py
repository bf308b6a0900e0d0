"""``adloom report``: the overview page, with charts of the tables."""

import os
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import SparkSession
from rich.console import Console

from spark_jobs.console.run import session
from spark_jobs.console.terminal import terminal
from spark_jobs.contracts.sections import S3Settings
from spark_jobs.contracts.settings import load_settings
from spark_jobs.lake.layout import Lake
from spark_jobs.runtime.lakes import open_existing


def write_report(location: str, *, config: Path | None) -> None:
    """Writes the overview page of the lake at ``location`` and prints its place.

    Raises:
        LakeError: there is no lake.
    """
    console, settings = terminal(), load_settings(config, os.environ)
    lake = open_existing(location, settings.s3)
    with session(console, settings, lake) as spark:
        page = write_with_status(console, spark, lake, settings.s3)
    print_overview(console, lake, page)


def write_with_status(
    console: Console, spark: SparkSession, lake: Lake, s3: S3Settings, *, is_validated_next: bool = False
) -> str:
    """Writes the page, as :func:`expectations.overview.page.write_overview` does, and shows a status meanwhile."""
    with console.status("drawing charts of the tables …"):
        # Importing it takes a second, and only this command needs it.
        from expectations.overview.page import write_overview

        return write_overview(spark, lake, s3, datetime.now(UTC), is_validated_next=is_validated_next)


def print_overview(console: Console, lake: Lake, page: str) -> None:
    """Prints the place of the page."""
    console.print(f"charts: {lake.place(page)}", soft_wrap=True)
