"""The progress of each query, from the notes in its table."""

import json
from datetime import datetime, timedelta
from typing import NamedTuple

from spark_jobs.config.durations import EPOCH
from spark_jobs.lake.batches import last_arrival, note_in_table
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.notes import CommitNote, version_reached
from spark_jobs.queries.places import checkpoint_batches, checkpoint_in_use, checkpoint_key
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


def next_watermark(lake: Lake, query: str) -> datetime | None:
    """The watermark under which the next batch of ``query`` will run, with its zone (UTC).

    A running query may have moved on by the time that this is read. None: the query has done no batch, has no watermark
    yet, or its checkpoint cannot be read.
    """
    version = checkpoint_in_use(lake, query)
    done = checkpoint_batches(lake, query, version, "commits")
    if not done:
        return None
    text = lake.files.read(f"{checkpoint_key(query, version)}/commits/{done[-1]}") or b""
    try:
        watermark_ms = int(json.loads(text.splitlines()[1])["nextBatchWatermarkMs"])
    except (ValueError, KeyError, TypeError, IndexError):
        return None
    return EPOCH + timedelta(milliseconds=watermark_ms) if watermark_ms > 0 else None
