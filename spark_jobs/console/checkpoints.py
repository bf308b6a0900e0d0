"""``adloom preflight`` and ``adloom checkpoints``."""

import os
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from spark_jobs.contracts.jobs import JOB_OF_QUERY
from spark_jobs.contracts.manifest import FILES, KAFKA, Verdict
from spark_jobs.contracts.settings import load_settings
from spark_jobs.runtime.checkpoints import list_checkpoints, preflight
from spark_jobs.runtime.lakes import open_existing

_STYLES = {Verdict.SAFE: "green", Verdict.IGNORED: "yellow", Verdict.BREAKING: "bold red"}


def show_preflight(location: str, config: Path | None) -> bool:
    """Prints how the settings differ from those of the lake's checkpoints. Returns whether all may be started.

    Raises:
        LakeError: there is no lake.
    """
    console, settings = Console(), load_settings(config, os.environ)
    lake = open_existing(location, settings.s3)
    begun = {checkpoint.query: checkpoint.manifest for checkpoint in list_checkpoints(lake)}
    ingest = begun.get("ingest")
    # What ingest reads is said at its start, not in the settings: no change of it can be foreseen here.
    source = ingest.settings.get("source", FILES) if ingest else KAFKA if settings.kafka.bootstrap_servers else FILES
    found = preflight(lake, settings, JOB_OF_QUERY, source=source)
    if not found:
        console.print(f"{lake.place()}: {len(begun)} checkpoints, all made with these settings", highlight=False)
        return True
    table = Table(
        box=SIMPLE_HEAD, title=f"{lake.place()}: changed since the checkpoints were begun", title_justify="left"
    )
    for heading in ("query", "setting", "was", "is", "verdict", "why"):
        table.add_column(heading)
    for change in found:
        verdict = Text(change.verdict.value, style=_STYLES[change.verdict])
        table.add_row(change.query, change.setting, change.before, change.now, verdict, change.why)
    console.print(table)
    return all(change.verdict is not Verdict.BREAKING for change in found)


def show_checkpoints(location: str, config: Path | None) -> None:
    """Prints the checkpoints of the lake at ``location``.

    Raises:
        LakeError: there is no lake.
    """
    console, lake = Console(), open_existing(location, load_settings(config, os.environ).s3)
    table = Table(box=SIMPLE_HEAD, title=f"{lake.place()}: checkpoints", title_justify="left")
    for heading in ("job", "query", "version", "begun", "by adloom"):
        table.add_column(heading)
    for heading in ("batches done", "MB"):
        table.add_column(heading, justify="right")
    for found in list_checkpoints(lake):
        manifest = found.manifest
        begun = f"{manifest.created_at:%Y-%m-%d %H:%M} UTC" if manifest else "no manifest"
        package = manifest.package_version if manifest else ""
        batches, size = f"{found.last_batch + 1:,}", f"{found.bytes / 1e6:,.1f}"
        table.add_row(found.job, found.query, f"v{found.version}", begun, package, batches, size)
    console.print(table)
