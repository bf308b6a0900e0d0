"""``adloom preflight`` and ``adloom checkpoints``."""

import json
import os
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from spark_jobs.console.run import session
from spark_jobs.console.terminal import terminal, utc
from spark_jobs.contracts.durations import format_duration
from spark_jobs.contracts.errors import AdloomError, CheckpointError, PreflightError
from spark_jobs.contracts.manifest import Verdict
from spark_jobs.contracts.settings import load_settings
from spark_jobs.lake.layout import Lake, checkpoint_key
from spark_jobs.queries import JOB_OF_QUERY, find_query
from spark_jobs.runtime.checkpoints import Checkpoint, list_checkpoints, preflight, source_of
from spark_jobs.runtime.cleaning import find_superseded, parse_targets, remove
from spark_jobs.runtime.lakes import open_existing

_STYLES = {Verdict.SAFE: "green", Verdict.IGNORED: "yellow", Verdict.BREAKING: "bold red"}


def show_preflight(location: str, config: Path | None, *, as_json: bool = False) -> bool:
    """Prints how the settings differ from those of the lake's checkpoints. Returns whether all queries can start.

    Raises:
        PreflightError: there is no lake, it does not answer, or a setting is wrong.
    """
    console = terminal()
    try:
        settings = load_settings(config, os.environ)
        lake = open_existing(location, settings.s3)
        current = {found.query: found.manifest for found in list_checkpoints(lake) if found.is_current}
        found = preflight(lake, settings, JOB_OF_QUERY, source=source_of(current.get("ingest"), settings))
    except AdloomError as error:
        raise PreflightError(str(error)) from error
    may_start = all(change.verdict is not Verdict.BREAKING for change in found)
    if as_json:
        console.out(json.dumps([asdict(change) for change in found]))
        return may_start
    if not found:
        console.print(f"{lake.place()}: {len(current)} checkpoints, all of them match these settings")
        return True
    table = Table(
        box=SIMPLE_HEAD, title=f"{lake.place()}: changed since the checkpoints were created", title_justify="left"
    )
    for heading in ("query", "setting", "was", "is", "verdict", "why"):
        table.add_column(heading)
    for change in found:
        verdict = Text(change.verdict.value, style=_STYLES[change.verdict])
        table.add_row(change.query, change.setting, change.before, change.now, verdict, change.why)
    console.print(table)
    return may_start


def list_all(location: str, config: Path | None) -> None:
    """Prints the checkpoints of the lake at ``location``.

    Raises:
        LakeError: there is no lake.
    """
    console, lake = terminal(), open_existing(location, load_settings(config, os.environ).s3)
    table = Table(box=SIMPLE_HEAD, title=f"{lake.place()}: checkpoints", title_justify="left")
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


def show_one(target: str, location: str, config: Path | None) -> None:
    """Prints the details of one checkpoint.

    Raises:
        LakeError: there is no lake.
        CheckpointError: there is no such checkpoint.
    """
    console, settings = terminal(), load_settings(config, os.environ)
    lake = open_existing(location, settings.s3)
    (finding,) = find_superseded(lake, settings.job.checkpoint_retention, datetime.now(UTC), parse_targets([target]))
    found = finding.checkpoint
    table = Table(box=None, show_header=False, title=f"{target} of {lake.place()}", title_justify="left")
    for name, value in _facts(lake, found, finding.why):
        table.add_row(Text(name, style="dim"), value)
    console.print(table)


def _facts(lake: Lake, found: Checkpoint, why_it_stays: str) -> Iterator[tuple[str, str]]:
    yield "place", lake.place(checkpoint_key(found.query, found.version))
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


def reset_checkpoint(query: str, location: str, source: Path | None, config: Path | None) -> None:
    """Creates a new version of the checkpoint of ``query`` and prints what was done.

    Raises:
        AdloomError: see :func:`spark_jobs.jobs.reset.reset`.
    """
    from spark_jobs.jobs.reset import reset

    find_query(query)
    console, settings = terminal(), load_settings(config, os.environ)
    lake = open_existing(location, settings.s3)
    with session(console, settings, lake) as spark, console.status(f"rebuilding the state of {query} …"):
        done = reset(spark, settings, lake, query, source)
    console.print(
        f"{query}: v{done.version} is now in use; its state was rebuilt from {done.open_events:,} open events; "
        f"v{done.version - 1} may be cleaned away after {format_duration(settings.job.checkpoint_retention)}",
        soft_wrap=True,
    )


def clean(targets: list[str], location: str, *, delete: bool, config: Path | None) -> None:
    """Prints which checkpoints may go and which stay; removes those that may go if ``delete``.

    Raises:
        CheckpointError: a target names no checkpoint, or one that must stay.
        LakeInUseError: the job of one that may go is running.
    """
    console, settings = terminal(), load_settings(config, os.environ)
    lake, wanted, now = open_existing(location, settings.s3), parse_targets(targets), datetime.now(UTC)
    retention = settings.job.checkpoint_retention
    table = Table(box=SIMPLE_HEAD, title=f"{lake.place()}: checkpoints", title_justify="left")
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
    for found in going:
        remove(lake, found, settings.s3, retention, now)
    freed = sum(found.bytes for found in going) / 1e6
    console.print(f"{len(going)} removed, {freed:,.1f} MB")
