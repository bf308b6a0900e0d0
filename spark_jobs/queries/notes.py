"""The progress of each query, from the notes in its table."""

from datetime import datetime
from typing import NamedTuple

from spark_jobs.lake.batches import last_arrival, note_in_table
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.notes import CommitNote, version_reached
from spark_jobs.queries.query import Query
from spark_jobs.queries.registry import find_query


class Taken(NamedTuple):
    """The progress of a query: the note of its last batch, and the last ``ingest_time`` of rows it has read.

    ``until`` is UTC, None if it has read no rows.
    """

    note: CommitNote
    until: datetime | None


def last_note(lake: Lake, query: str, *, until: int | None = None) -> CommitNote | None:
    """The note of the last batch of ``query`` in its table, up to version ``until``; None if the table holds none.

    The note of an old batch has only the version that the batch had read.
    """
    return note_in_table(lake, find_query(query).writes, query, until=until)


def taken(lake: Lake, query: Query) -> Taken | None:
    """The progress of ``query`` in the table that it reads; None: its own table holds no batch."""
    note = last_note(lake, query.name)
    if note is None:
        return None
    return Taken(note, last_arrival(lake, query.reads[0], min(map(version_reached, note.reached))))
