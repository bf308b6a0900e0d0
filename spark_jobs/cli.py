"""The command ``adloom``."""

import sys
from importlib.util import find_spec
from typing import Annotated, NoReturn

import typer
from rich.text import Text

from spark_jobs import __version__
from spark_jobs.commands import (
    backup,
    credit,
    days,
    ledger,
    lineage,
    marks,
    once,
    repair,
    replay,
    requeue,
    service,
    sql,
)
from spark_jobs.console.terminal import terminal
from spark_jobs.contracts.errors import AdloomError, EnvironmentMissingError

app = typer.Typer(
    name="adloom",
    help="Joins ad impressions with clicks: exact, validated Delta tables from late, duplicate and broken events.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for commands in (service, requeue, repair, replay, credit, marks, days, ledger, lineage, backup, sql, once):
    app.add_typer(commands.app)


def _version(wanted: bool) -> None:  # noqa: FBT001
    if wanted:
        terminal().print(f"adloom {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def _end(error: AdloomError) -> NoReturn:
    terminal(stderr=True).print(Text.assemble(("error:", "bold red"), f" {error}"), soft_wrap=True)
    sys.exit(error.exit_code)


def main() -> None:
    """Entry point of the command: an AdloomError becomes one message and exit code 1."""
    try:
        app()
    except AdloomError as error:
        _end(error)
    except ModuleNotFoundError as error:
        if find_spec("pyspark"):
            raise
        _end(
            EnvironmentMissingError(
                f"adloom is installed without what this command needs: {error.name} is missing, because only DAGs and "
                "pages were installed; install adloom[jobs], into another environment than Airflow's"
            )
        )
    except KeyboardInterrupt:
        terminal(stderr=True).print("interrupted; run the same command again to continue")
        sys.exit(130)
