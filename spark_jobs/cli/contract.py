"""``adloom contract``."""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from spark_jobs.cli.options import ConfigOption
from spark_jobs.cli.terminal import terminal
from spark_jobs.config.settings import load_settings
from spark_jobs.contract.changes import Comparison, Level, VersionFinding, check
from spark_jobs.contract.compatibility import Compatibility
from spark_jobs.contract.contract import Contract, TableTerms, read_contract
from spark_jobs.errors import AdloomError, ContractError
from spark_jobs.lake.contracts import contract_in_use
from spark_jobs.lake.open import open_existing

app = typer.Typer(
    name="contract",
    no_args_is_help=True,
    help="The contract: what producers must send and consumers get, its version, and what a change of it breaks.",
)


_STYLES = {Compatibility.SAFE: "green", Compatibility.BREAKING: "bold red"}
_LEVELS = {Level.OK: "green", Level.WARNING: "yellow", Level.ERROR: "bold red"}
FORMATS = ("odcs", "json")


@app.command("show", epilog="Example:  adloom contract show --config adloom.toml")
def show(config: ConfigOption = None) -> None:
    """Show the contract that the settings make: sources, fields of an event, rules, tables."""
    from expectations.contract import contract_of

    console, contract = terminal(), contract_of(load_settings(config, os.environ))
    owner = f", owner {contract.owner}" if contract.owner else ""
    console.print(f"contract {contract.name}, version {contract.version}{owner}")
    console.print(_sources(contract), _fields(contract), _records(contract), _tables(contract.tables))


@app.command(
    "check",
    epilog="Example:  adloom contract check old.toml new.toml   adloom contract check --lake lake --config new.toml   "
    "Exit codes: 0 if every change is safe; 1 if one is breaking; 2 if they could not be compared, with the reason on "
    "stderr. The environment counts for both.",
)
def check_versions(
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
    console = terminal()
    try:
        found = _compare(old, new, lake, config)
    except ContractError:
        raise
    except AdloomError as error:
        raise ContractError(str(error)) from error
    if as_json:
        console.out(json.dumps(found.as_json()))
        _end(found)
        return
    if found.changes:
        console.print(_changes(found))
    version = found.version
    numbers = f"version {version.before} → {version.now}: " if version.before else ""
    console.print(Text.assemble(numbers, (version.level.value, _LEVELS[version.level]), f", {version.why}"))
    _end(found)


@app.command("export", epilog="Example:  adloom contract export --format odcs --out contract.odcs.yaml")
def export(
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
    from expectations.contract import contract_of
    from spark_jobs.contract.odcs import odcs_yaml

    if form not in FORMATS:
        raise ContractError(f"no format {form!r}; give --format {' or '.join(FORMATS)}")
    contract = contract_of(load_settings(config, os.environ))
    text = odcs_yaml(contract) if form == "odcs" else contract.model_dump_json(indent=2) + "\n"
    if out is None:
        terminal(is_uncut=True).out(text, end="")
        return
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ContractError(f"{out} cannot be written: {error.strerror}; give --out another path") from error


def _end(found: Comparison) -> None:
    if found.breaking:
        raise typer.Exit(1)


def _compare(old: Path | None, new: Path | None, lake: str | None, config: Path | None) -> Comparison:
    from expectations.contract import contract_of

    now = _load(new) if new else contract_of(load_settings(config, os.environ))
    if old:
        return check(_load(old), now)
    if not lake:
        raise ContractError(
            "nothing to compare with: give OLD and NEW, or --lake for the contract that it is in use with"
        )
    before = contract_in_use(open_existing(lake, load_settings(config, os.environ).s3))
    if before is None:
        why = "the lake has no contract yet; the job deduplicate writes it down when it starts"
        return Comparison((), VersionFinding("", now.version, Level.OK, why))
    return check(before, now)


def _load(file: Path) -> Contract:
    from expectations.contract import contract_of

    if file.suffix != ".json":
        return contract_of(load_settings(file, os.environ))
    try:
        return read_contract(file.read_bytes(), str(file))
    except OSError as error:
        raise ContractError(f"{file} cannot be read: {error.strerror}; check the path") from error


def _changes(found: Comparison) -> Table:
    rows = (
        (
            change.what,
            change.before,
            change.now,
            Text(change.verdict.value, style=_STYLES[change.verdict]),
            change.kind.whom.value,
            change.kind.why,
        )
        for change in found.changes
    )
    return _table("changes", ("what", "was", "is", "verdict", "for", "why"), rows)


def _sources(contract: Contract) -> Table:
    rows = (
        (
            one.name,
            ", ".join(filter(None, one.inputs)) or "the folder of a run",
            one.format,
            one.when or "all records",
            ", ".join(one.expressions) or "all fields",
            ", ".join(kept.name for kept in one.keep),
        )
        for one in contract.sources
    )
    return _table(
        "sources, in the order in which they are tried", ("source", "reads", "format", "when", "gives", "keeps"), rows
    )


def _fields(contract: Contract) -> Table:
    rows = (
        (
            field.name,
            field.type,
            ", ".join(field.event_types) or "all",
            "yes" if field.required else "",
            f"1 to {field.max_length} characters"
            if field.max_length
            else ""
            if field.minimum is None
            else f"≥ {field.minimum}",
        )
        for field in contract.fields
    )
    return _table("fields of an event", ("field", "type", "event types", "required", "limit"), rows)


def _records(contract: Contract) -> Table:
    rows = (
        (rule.verdict, "" if rule.limit is None else f"{rule.limit:,} {rule.unit}", rule.meaning)
        for rule in contract.records
    )
    return _table("rules about records", ("verdict if broken", "limit", "rule"), rows)


def _tables(tables: Iterable[TableTerms]) -> Table:
    rows = (
        (
            one.path,
            ", ".join(column.name for column in one.columns),
            ", ".join(f"{name} {value}" for name, value in one.settings.items()),
            str(len(one.expectations)),
        )
        for one in tables
    )
    return _table("tables", ("table", "columns", "settings", "expectations"), rows)


def _table(title: str, headings: Iterable[str], rows: Iterable[Iterable[str | Text]]) -> Table:
    table = Table(box=SIMPLE_HEAD, title=title, title_justify="left")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table
