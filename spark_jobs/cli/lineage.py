"""``adloom lineage``: a line for each event that was sent."""

import os
from typing import TYPE_CHECKING, Annotated

import typer

from spark_jobs.cli.options import ConfigOption, LakeOption
from spark_jobs.cli.terminal import terminal, utc
from spark_jobs.config.settings import load_settings
from spark_jobs.contract.validation import Validation
from spark_jobs.lake.open import open_existing

if TYPE_CHECKING:
    from spark_jobs.lineage.events import VersionSpan

app = typer.Typer()


@app.command(
    epilog="Example:  adloom lineage --lake lake --config adloom.toml   In the file: [lineage], transport = 'http', "
    "url = 'http://marquez:5000/api/v1/lineage'.",
)
def lineage(
    location: LakeOption,
    from_now: Annotated[
        bool, typer.Option("--from-now", help="Send nothing now, and begin with what comes next.")
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Send OpenLineage events about what was committed and validated since the last time, to where the settings say.

    One event reports what a query, a repair or maintenance has added to a table: versions read and written, columns and
    their sources, rows. Another one reports what a validation found in each table. Each version and each validation is
    reported once, also if the command is killed. Jobs may keep running.
    """
    from spark_jobs.lineage.parent import parent_run, within
    from spark_jobs.lineage.send import report_new
    from spark_jobs.lineage.transport import transport

    settings, console = load_settings(config, os.environ), terminal()
    send, lake, events = transport(settings.lineage), open_existing(location, settings.s3), 0
    if parent := parent_run(os.environ):
        send = within(parent, send)
    for reported in report_new(lake, settings, send, from_now=from_now):
        console.print(_line(reported), soft_wrap=True)
        events += 1
    console.print("begins with what comes next" if from_now else f"{events} events sent")


def _line(one: "VersionSpan | Validation") -> str:
    if isinstance(one, Validation):
        rules = [*one.together, *(rule for table in one.tables.values() for rule in table.rules)]
        broken = sum(not rule.holds for rule in rules)
        return f"validation of {utc(one.at)}: {len(rules)} expectations, {broken} not met"
    rows = sum(file.rows or 0 for change in one.changes for file in change.added)
    return f"{one.query.writes.name}: versions {one.first} to {one.last} by {one.writer}, {rows:,} rows"
