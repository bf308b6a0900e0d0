"""``adloom lineage``: a line for each event that was sent."""

import os
from pathlib import Path

from spark_jobs.console.terminal import terminal
from spark_jobs.contracts.settings import load_settings
from spark_jobs.jobs.lineage import tell
from spark_jobs.lineage.transport import transport
from spark_jobs.runtime.lakes import open_existing


def tell_lineage(location: str, *, from_now: bool, config: Path | None) -> None:
    """Sends the events of the lake at ``location`` and prints what they tell.

    Raises:
        AdloomError: see :func:`spark_jobs.jobs.lineage.tell` and :func:`spark_jobs.lineage.transport.transport`.
    """
    settings, console = load_settings(config, os.environ), terminal()
    send, lake, told = transport(settings.lineage), open_existing(location, settings.s3), 0
    for span in tell(lake, settings, send, from_now=from_now):
        rows = sum(file.rows or 0 for change in span.changes for file in change.added)
        table = span.query.writes.name
        console.print(f"{table}: versions {span.first} to {span.last} by {span.writer}, {rows:,} rows", soft_wrap=True)
        told += 1
    console.print("begins with what is committed next" if from_now else f"{told} events sent")
