"""``adloom preflight``: what a change of settings means for the checkpoints of a lake."""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from spark_jobs.cli.options import ConfigOption, LakeOption
from spark_jobs.cli.terminal import terminal
from spark_jobs.config.settings import load_settings
from spark_jobs.contract.compatibility import Compatibility, SettingChange
from spark_jobs.errors import AdloomError, PreflightError
from spark_jobs.lake.open import open_existing
from spark_jobs.queries.registry import JOB_OF_QUERY
from spark_jobs.streams.checkpoints import list_checkpoints, source_of
from spark_jobs.streams.checkpoints import preflight as compare

app = typer.Typer()
_STYLES = {Compatibility.SAFE: "green", Compatibility.IGNORED: "yellow", Compatibility.BREAKING: "bold red"}


@app.command(
    epilog="Example:  adloom preflight --lake lake --config new.toml   Exit codes: 0 if the checkpoints can be used; 1 "
    "if a change is breaking; 2 if they could not be compared, with the reason on stderr. Every job makes the same "
    "check before it starts.",
)
def preflight(
    location: LakeOption,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON, one object per change.", show_default=False)
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Compare the settings with those the lake's checkpoints depend on: safe, ignored, or breaking."""
    console = terminal()
    try:
        settings = load_settings(config, os.environ)
        lake = open_existing(location, settings.s3)
        current = {found.query: found.manifest for found in list_checkpoints(lake) if found.is_current}
        found = compare(lake, settings, JOB_OF_QUERY, source=source_of(current.get("ingest"), settings))
    except AdloomError as error:
        raise PreflightError(str(error)) from error
    if as_json:
        console.out(json.dumps([asdict(change) for change in found]))
        _end(found)
        return
    if not found:
        console.print(f"{lake.shown()}: {len(current)} checkpoints, all of them match these settings")
        return
    table = Table(
        box=SIMPLE_HEAD, title=f"{lake.shown()}: changed since the checkpoints were created", title_justify="left"
    )
    for heading in ("query", "setting", "was", "is", "verdict", "why"):
        table.add_column(heading)
    for change in found:
        verdict = Text(change.verdict.value, style=_STYLES[change.verdict])
        table.add_row(change.query, change.setting, change.before, change.now, verdict, change.why)
    console.print(table)
    _end(found)


def _end(found: Sequence[SettingChange]) -> None:
    if any(change.verdict is Compatibility.BREAKING for change in found):
        raise typer.Exit(1)
