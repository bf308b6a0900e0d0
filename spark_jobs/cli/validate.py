"""``adloom validate``: checks the expectations and writes the report."""

import os
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from spark_jobs.cli.opening import session
from spark_jobs.cli.terminal import terminal
from spark_jobs.config.settings import load_settings
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_existing

if TYPE_CHECKING:
    from expectations.results import ValidationResult
    from spark_jobs.spark.open_lake import OpenLake
from typing import Annotated

import typer

from spark_jobs.cli.options import ConfigOption, LakeOption

app = typer.Typer()


@app.command(
    epilog="Example:  adloom validate --lake lake --critical   Exit code 1 if an expectation fails; with --critical, "
    "only if a critical one does. Jobs may keep running.",
)
def validate(
    location: LakeOption,
    whole: Annotated[
        bool, typer.Option("--whole", help="Validate whole tables instead of only the rows since the last validation.")
    ] = False,
    critical: Annotated[
        bool, typer.Option("--critical", help="Exit code 1 for critical failures only; warnings pass.")
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Check the tables against their expectations and write the HTML report."""
    console, settings = terminal(), load_settings(config, os.environ)
    lake = open_existing(location, settings.s3)
    with session(console, settings, lake) as opened:
        validation = validate_with_status(console, opened, whole=whole)
    print_validation(console, lake, validation)
    if validation.critical if critical else validation.failed:
        raise typer.Exit(1)


def validate_with_status(console: Console, lake: "OpenLake", *, whole: bool) -> "ValidationResult":
    """Validates ``lake`` and shows each step as a status."""
    with console.status("loading Great Expectations …") as status:
        # Importing it takes seconds, and only validation needs it.
        from expectations.validate import validate_lake

        return validate_lake(lake, whole=whole, on_progress=lambda step: status.update(f"{step} …"))


def print_validation(console: Console, lake: Lake, validation: "ValidationResult") -> None:
    """Prints the expectations passed and failed, and the place of the report."""
    table = Table(title="Expectations", title_justify="left", box=None, padding=(0, 2))
    table.add_column("")
    for heading in ("rows", "passed", "failed"):
        table.add_column(heading, justify="right")
    for result in validation.tables:
        table.add_row(result.table, f"{result.rows:,}", str(result.passed), str(len(result.failed)))
    table.add_section()
    table.add_row("all", "", str(validation.passed), str(validation.failed), style="bold")
    console.print()
    console.print(table)
    for result in validation.tables:
        for failure in result.failed:
            console.print(f"  {failure.severity}: {result.table}: {failure.reason}", soft_wrap=True)
    console.print(f"report: {lake.shown(validation.report)}", soft_wrap=True)
