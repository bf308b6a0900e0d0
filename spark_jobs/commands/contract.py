"""Commands on the contract of a lake."""

from pathlib import Path
from typing import Annotated

import typer

from spark_jobs.commands.options import ConfigOption

contract_app = typer.Typer(
    no_args_is_help=True,
    help="The contract: what producers must send and consumers get, its version, and what a change of it breaks.",
)


@contract_app.command("show", epilog="Example:  adloom contract show --config adloom.toml")
def show_contract(config: ConfigOption = None) -> None:
    """Show the contract that the settings make: sources, fields of an event, rules, tables."""
    from spark_jobs.console.contract import show

    show(config)


@contract_app.command(
    "check",
    epilog="Example:  adloom contract check old.toml new.toml   adloom contract check --lake lake --config new.toml   "
    "Exit codes: 0 if every change is safe; 1 if one is breaking; 2 if they could not be compared, with the reason on "
    "stderr. The environment counts for both.",
)
def check_contract(
    old: Annotated[
        Path | None,
        typer.Argument(
            help="Settings (TOML) or an exported contract (JSON). Default: what the lake is in use with.",
            metavar="OLD",
            show_default=False,
        ),
    ] = None,
    new: Annotated[
        Path | None,
        typer.Argument(help="Likewise. Default: the settings in effect.", metavar="NEW", show_default=False),
    ] = None,
    lake: Annotated[
        str | None,
        typer.Option(
            envvar="ADLOOM_LAKE",
            help="Lake whose contract is OLD, if none is given.",
            metavar="URI",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON: the changes, and what they need of the version.")
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Compare two contracts: which changes are safe, which break producers or consumers, and why.

    It also says whether contract.version was raised as the changes need it: a breaking change needs a new major, a safe
    one a new minor.
    """
    from spark_jobs.console.contract import show_check

    if not show_check(old, new, lake, config, as_json=as_json):
        raise typer.Exit(1)


@contract_app.command("export", epilog="Example:  adloom contract export --format odcs --out contract.odcs.yaml")
def export_contract(
    form: Annotated[
        str,
        typer.Option(
            "--format",
            help="odcs: YAML of the Open Data Contract Standard v3.1; json: everything, for `adloom contract check`.",
            metavar="odcs|json",
        ),
    ] = "odcs",
    out: Annotated[
        Path | None, typer.Option(help="File to write; default: standard output.", metavar="FILE", show_default=False)
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Write the contract that the settings make for other tools, or for a later comparison."""
    from spark_jobs.console.contract import export

    export(form, config, out)
