"""The command ``adloom``."""

import sys
from importlib.util import find_spec
from traceback import format_exc
from typing import Annotated, NoReturn

import typer
from rich.text import Text

from spark_jobs import __version__
from spark_jobs.cli import (
    backup,
    check_events,
    checkpoints,
    contract,
    credit,
    days,
    demo,
    doctor,
    drain,
    driver,
    export,
    exporter,
    generate,
    init,
    job,
    ledger,
    lineage,
    maintain,
    marks,
    missed_days,
    preflight,
    releases,
    repair,
    replay,
    report,
    requeue,
    run,
    settings,
    sql,
    state,
    status,
    stop,
    submit,
    suggest_mapping,
    validate,
)
from spark_jobs.cli.terminal import terminal
from spark_jobs.errors import AdloomError, EnvironmentMissingError
from spark_jobs.printable import printable

PANELS = {
    "Try it": (demo, generate, suggest_mapping, check_events),
    "Stream": (init, run, job, driver, submit, status, stop, drain),
    "Correct": (requeue, repair, replay),
    "Credit and marks": (credit, marks),
    "Look": (sql, export, days, missed_days, ledger, validate, report),
    "Operate": (
        *(settings, contract, preflight, checkpoints, state, releases, doctor, maintain, backup, exporter, lineage),
    ),
}
"""By the heading in ``adloom --help``, the modules of its commands."""

app = typer.Typer(
    name="adloom",
    help="Joins ad impressions with clicks: exact, validated Delta tables from late, duplicate and broken events.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for panel, modules in PANELS.items():
    for module in modules:
        # Of a group the panel is given with the group, of other modules with each command.
        for command in module.app.registered_commands:
            command.rich_help_panel = panel
        app.add_typer(module.app, rich_help_panel=panel)


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


def _show_fault() -> NoReturn:
    """Ends with the traceback of the exception at hand, as Python does; its text may quote a record."""
    sys.stderr.write(printable(format_exc()))
    sys.exit(1)


def main() -> None:
    """Entry point of the command: an AdloomError becomes one message and exit code 1."""
    try:
        app()
    except AdloomError as error:
        _end(error)
    except ModuleNotFoundError as error:
        if find_spec("pyspark"):
            _show_fault()
        _end(
            EnvironmentMissingError(
                f"adloom is installed without what this command needs: {error.name} is missing, because only DAGs and "
                "pages were installed; install adloom[jobs], into another environment than Airflow's"
            )
        )
    except KeyboardInterrupt:
        terminal(stderr=True).print("interrupted; run the same command again to continue")
        sys.exit(130)
    except Exception:  # noqa: BLE001 a fault of adloom
        _show_fault()
