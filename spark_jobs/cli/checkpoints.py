"""``adloom preflight`` and ``adloom checkpoints``."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from spark_jobs.cli.opening import session
from spark_jobs.cli.options import ConfigOption, LakeOption
from spark_jobs.cli.terminal import terminal, utc
from spark_jobs.config.durations import format_duration
from spark_jobs.config.settings import load_settings
from spark_jobs.contract.compatibility import Compatibility
from spark_jobs.errors import CheckpointError, LakeInUseError
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_existing
from spark_jobs.queries.places import checkpoint_key
from spark_jobs.queries.registry import JOB_OF_QUERY, find_query
from spark_jobs.streams.checkpoints import Checkpoint, list_checkpoints
from spark_jobs.streams.clean_checkpoints import find_superseded, parse_targets, remove

app = typer.Typer(
    name="checkpoints",
    no_args_is_help=True,
    help="Inspect the checkpoints of a lake, reset one, and remove those that are no longer in use.",
)


_STYLES = {Compatibility.SAFE: "green", Compatibility.IGNORED: "yellow", Compatibility.BREAKING: "bold red"}


@app.command("list", epilog="Example:  adloom checkpoints list --lake lake")
def list_all(location: LakeOption, config: ConfigOption = None) -> None:
    """List all checkpoints with start time, version, batches done and size. Those no longer in use are dimmed."""
    console, lake = terminal(), open_existing(location, load_settings(config, os.environ).s3)
    table = Table(box=SIMPLE_HEAD, title=f"{lake.shown()}: checkpoints", title_justify="left")
    for heading in ("checkpoint", "created", "by adloom"):
        table.add_column(heading, no_wrap=True)
    for heading in ("batches", "MB"):
        table.add_column(heading, justify="right")
    for found in list_checkpoints(lake):
        manifest = found.manifest
        created = utc(manifest.created_at) if manifest else "no manifest"
        package = manifest.package_version if manifest else ""
        batches, size = f"{found.last_batch + 1:,}", f"{found.bytes / 1e6:,.1f}"
        style = "" if found.is_current else "dim"
        table.add_row(found.name, created, package, batches, size, style=style)
    console.print(table)


@app.command("show", epilog="Example:  adloom checkpoints show attribute/sessionize/v1 --lake lake")
def show(
    checkpoint: Annotated[str, typer.Argument(help="`<job>/<query>/v<N>`.", metavar="CHECKPOINT")],
    location: LakeOption,
    config: ConfigOption = None,
) -> None:
    """Show one checkpoint: its location, whether it is in use, and the settings its state depends on."""
    console, settings = terminal(), load_settings(config, os.environ)
    lake = open_existing(location, settings.s3)
    (finding,) = find_superseded(
        lake, settings.job.checkpoint_retention, datetime.now(UTC), parse_targets([checkpoint])
    )
    found = finding.checkpoint
    table = Table(box=None, show_header=False, title=f"{checkpoint} of {lake.shown()}", title_justify="left")
    for name, value in _facts(lake, found, finding.why):
        table.add_row(Text(name, style="dim"), value)
    console.print(table)


@app.command(
    "reset",
    epilog="Example:  adloom checkpoints reset sessionize --lake lake --config new.toml   Stop the job first. The old "
    "checkpoint stays until `adloom checkpoints clean` removes it.",
)
def reset(
    query: Annotated[str, typer.Argument(help=f"One of {', '.join(JOB_OF_QUERY)}.", metavar="QUERY")],
    location: LakeOption,
    source: Annotated[
        str | None,
        typer.Option(
            help="For ingest: the folder, if it reads one by this option. New files are read in.", metavar="DIR"
        ),
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Replace a query's checkpoint after damage or a change of settings: no row is lost or written twice.

    The state is rebuilt from the tables: they say how far the query had read and which events were still open.
    """
    from spark_jobs.streams.reset import reset as rebuild

    find_query(query)
    console, settings = terminal(), load_settings(config, os.environ)
    lake = open_existing(location, settings.s3)
    with session(console, settings, lake) as opened, console.status(f"rebuilding the state of {query} …"):
        done = rebuild(opened, query, source)
    console.print(
        f"{query}: v{done.version} is now in use; its state was rebuilt from {done.open_events:,} open events; "
        f"v{done.version - 1} may be cleaned away after {format_duration(settings.job.checkpoint_retention)}",
        soft_wrap=True,
    )


@app.command("clean", epilog="Example:  adloom checkpoints clean --lake lake --delete")
def clean(
    location: LakeOption,
    checkpoint: Annotated[
        list[str] | None, typer.Argument(help="Only these: `<job>/<query>/v<N>`.", metavar="CHECKPOINT")
    ] = None,
    delete: Annotated[
        bool, typer.Option("--delete", help="Remove them; without it, only list what would be removed.")
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Remove checkpoints that were replaced longer ago than job.checkpoint_retention, and nothing else.

    Jobs may run.
    """
    console, settings = terminal(), load_settings(config, os.environ)
    lake, wanted, now = open_existing(location, settings.s3), parse_targets(checkpoint or []), datetime.now(UTC)
    retention = settings.job.checkpoint_retention
    table = Table(box=SIMPLE_HEAD, title=f"{lake.shown()}: checkpoints", title_justify="left")
    for heading in ("checkpoint", "MB", "fate"):
        table.add_column(heading, justify="right" if heading == "MB" else "left")
    findings = list(find_superseded(lake, retention, now, wanted or None))
    for finding in findings:
        found = finding.checkpoint
        fate = Text(f"stays: {finding.why}") if finding.why else Text("goes" if delete else "would go", style="yellow")
        table.add_row(found.name, f"{found.bytes / 1e6:,.1f}", fate)
    console.print(table)
    if wanted and (kept := [finding for finding in findings if finding.why]):
        found = kept[0].checkpoint
        raise CheckpointError(f"{found.name} stays: {kept[0].why}; nothing was removed")
    going = [finding.checkpoint for finding in findings if not finding.why]
    if not delete:
        console.print(f"{len(going)} would go; nothing was removed: add --delete to remove")
        return
    gone = []
    for found in going:
        try:
            remove(lake, found, settings.s3, retention, now)
        except (CheckpointError, LakeInUseError) as error:
            if wanted:
                raise
            console.print(Text(str(error)), soft_wrap=True)  # and those after it go
        else:
            gone.append(found)
    console.print(f"{len(gone)} removed, {sum(found.bytes for found in gone) / 1e6:,.1f} MB")


def _facts(lake: Lake, found: Checkpoint, why_it_stays: str) -> Iterator[tuple[str, str]]:
    yield "place", lake.shown(checkpoint_key(found.query, found.version))
    yield "status", why_it_stays or "may be removed by `adloom checkpoints clean`"
    if found.manifest:
        yield "created", f"{utc(found.manifest.created_at)} by adloom {found.manifest.package_version}"
    if found.written_at:
        yield "last written", utc(found.written_at)
    yield "last batch", f"{found.last_batch:,}" if found.last_batch >= 0 else "none"
    yield "files", f"{found.files:,}, {found.bytes / 1e6:,.1f} MB"
    yield from (found.manifest.settings if found.manifest else {}).items()
    if found.manifest and found.manifest.begins_at:
        yield "starts at", found.manifest.begins_at
