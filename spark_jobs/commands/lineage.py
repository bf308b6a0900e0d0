"""The command that tells OpenLineage what was committed and validated."""

from typing import Annotated

import typer

from spark_jobs.commands.options import ConfigOption, LakeOption

app = typer.Typer()


@app.command(
    rich_help_panel="Streaming: long-running jobs",
    epilog="Example:  adloom lineage --lake lake --config adloom.toml   In the file: [lineage], transport = 'http', "
    "url = 'http://marquez:5000/api/v1/lineage'.",
)
def lineage(
    lake: LakeOption,
    from_now: Annotated[
        bool, typer.Option("--from-now", help="Send nothing now, and begin with what comes next.")
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Send OpenLineage events about what was committed and validated since the last time, to where the settings say.

    One event tells what a query, a repair or maintenance has added to a table: versions read and written, columns and
    what they are computed of, rows. Another one tells what a validation found in each table. Each version and each
    validation is told once, also if the command is killed. Jobs may keep running.
    """
    from spark_jobs.console.lineage import tell_lineage

    tell_lineage(lake, from_now=from_now, config=config)
