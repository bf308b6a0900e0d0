"""The command that shows the live ledger."""

from enum import StrEnum
from typing import Annotated

import typer

from spark_jobs.commands.options import ConfigOption, LakeOption
from spark_jobs.contracts.errors import SettingsError

app = typer.Typer()


class _By(StrEnum):
    HOUR = "hour"
    SOURCE = "source"


@app.command(
    rich_help_panel="Streaming: long-running jobs",
    epilog="Examples:  adloom ledger --lake lake   |   adloom ledger --lake lake --by hour   "
    "Exit code 1 if the account does not balance. Jobs may keep running.",
)
def ledger(
    lake: LakeOption,
    update: Annotated[
        bool, typer.Option("--update/--no-update", help="Bring the account up to now, or show it as it was last taken.")
    ] = True,
    by: Annotated[
        _By | None, typer.Option(help="Show records by hour of event time, or by source.", metavar="hour|source")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    restart: Annotated[bool, typer.Option("--restart", help="Count everything again from the first commit.")] = False,
    from_now: Annotated[
        bool,
        typer.Option("--from-now", help="Begin anew, with what comes from now on."),
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Show where every record went: the account of a lake, kept while its jobs run.

    Each record received is in quarantine, kept, a duplicate, or late, and each event that was kept is in gold, pending
    or late there. The account covers versions of the tables that belong together and must balance to the row. Spark is
    not started: only what is new since the last time is read, from the tables' logs and files.
    """
    from spark_jobs.console.ledger import show_ledger

    if restart and from_now:
        raise SettingsError("--restart counts everything and --from-now nothing that is there: give one of them")
    by_what = by and by.value
    if not show_ledger(
        lake, update=update, by=by_what, as_json=as_json, restart=restart, from_now=from_now, config=config
    ):
        raise typer.Exit(1)
