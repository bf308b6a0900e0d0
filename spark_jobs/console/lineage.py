"""``adloom lineage``: a line for each event that was sent."""

import os
from pathlib import Path

from spark_jobs.console.terminal import terminal, utc
from spark_jobs.contracts.settings import load_settings
from spark_jobs.contracts.validations import Validation
from spark_jobs.jobs.lineage import tell
from spark_jobs.lineage.events import Span
from spark_jobs.lineage.parent import parent_run, within
from spark_jobs.lineage.transport import transport
from spark_jobs.runtime.lakes import open_existing


def tell_lineage(location: str, *, from_now: bool, config: Path | None) -> None:
    """Sends the events of the lake at ``location`` and prints what they tell.

    Raises:
        AdloomError: see :func:`spark_jobs.jobs.lineage.tell`, :func:`spark_jobs.lineage.transport.transport` and
            :func:`spark_jobs.lineage.parent.parent_run`.
    """
    settings, console = load_settings(config, os.environ), terminal()
    send, lake, events = transport(settings.lineage), open_existing(location, settings.s3), 0
    if parent := parent_run(os.environ):
        send = within(parent, send)
    for told in tell(lake, settings, send, from_now=from_now):
        console.print(_line(told), soft_wrap=True)
        events += 1
    console.print("begins with what comes next" if from_now else f"{events} events sent")


def _line(told: Span | Validation) -> str:
    if isinstance(told, Validation):
        rules = [*told.together, *(rule for table in told.tables.values() for rule in table.rules)]
        broken = sum(not rule.holds for rule in rules)
        return f"validation of {utc(told.at)}: {len(rules)} expectations, {broken} not met"
    rows = sum(file.rows or 0 for change in told.changes for file in change.added)
    return f"{told.query.writes.name}: versions {told.first} to {told.last} by {told.writer}, {rows:,} rows"
