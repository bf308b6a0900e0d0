"""The command that brings late events to gold."""

from typing import Annotated

import typer

from spark_jobs.commands.options import ConfigOption, LakeOption

app = typer.Typer()


@app.command(
    rich_help_panel="Streaming: long-running jobs",
    epilog="Examples:  adloom repair --lake lake --config adloom.toml --dry-run   |   "
    "adloom repair --lake lake --config adloom.toml",
)
def repair(
    lake: LakeOption,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be changed, and change no table.")
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Correct gold by the events that came too late: it becomes what it would be had nothing been late.

    The live queries leave out what lies behind their watermark. A repair finds these events, recomputes the rows that
    they touch, and changes these rows, each once. Jobs may keep running: nothing live reads a late event, and what can
    still change by itself waits for a later repair. Every change is told in gold/restatements, with the row before and
    after and the event that caused it. A repair that was killed goes on where it stopped.
    """
    from spark_jobs.console.repair import repair_lake

    repair_lake(lake, dry_run=dry_run, config=config)
