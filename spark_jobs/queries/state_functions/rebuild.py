"""Rebuilds the state of queries with a state function in Python, for either clock."""

from datetime import timedelta
from typing import TYPE_CHECKING

from spark_jobs.config.choices import Clock
from spark_jobs.contract.tables import SILVER_EVENTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    from spark_jobs.queries.resume_point import ResumePoint


def emitted_everything(at: "ResumePoint") -> bool:
    """Whether the query ran in processing time, and so without a watermark: its output is complete."""
    return at.note.watermark_ms == 0 and not at.read(at.query.writes).isEmpty()


def open_events(at: "ResumePoint") -> "DataFrame":
    """The events that the query held back: see :meth:`spark_jobs.queries.query.Query.open_events`."""
    from spark_jobs.queries.open_events import newest_heartbeat, not_settled

    if emitted_everything(at):
        return newest_heartbeat(at.read(SILVER_EVENTS))
    return not_settled(at.read_within(SILVER_EVENTS, timedelta()), at.settled_before)


def write_rebuilt(at: "ResumePoint", clock: Clock) -> "Callable[[DataFrame], None] | None":
    """Writes the rows that the query held back, if the new ``clock`` is processing time, which holds nothing back.

    See :meth:`spark_jobs.queries.query.Query.write_rebuilt`.
    """
    from spark_jobs.queries.append_missing import append_some, note_of_reset

    if clock is Clock.EVENT or emitted_everything(at):
        return None
    # Rows that the watermark had not passed were still waiting; in processing time nothing waits.
    note = note_of_reset(at.note).model_copy(update={"watermark_ms": 0})
    return lambda rows: append_some(rows, at.lake, at.query.writes, note)
