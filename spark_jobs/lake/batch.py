"""The facts that one commit of a table records, and their sum over several."""

import json
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from functools import reduce
from itertools import accumulate, groupby
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict, JsonValue

from spark_jobs.config.durations import EPOCH, microseconds
from spark_jobs.contract.events import HEARTBEAT
from spark_jobs.contract.tables import Table
from spark_jobs.lake.notes import CommitNote, info_in, read_note, version_reached

T = TypeVar("T", int, date)
_WHOLE: Final = 64
"""The number of latest batches that are kept as they are."""
_MINUTE_MS, _DAY_MS = 60_000, 86_400_000
_STEPS: Final = ((2 * _DAY_MS, 10 * _MINUTE_MS), (40 * _DAY_MS, 60 * _MINUTE_MS), (400 * _DAY_MS, _DAY_MS))
"""By age in milliseconds, the span of time in which batches are summed up into one."""
_OLDEST_STEP: Final = 30 * _DAY_MS
EVER_US: Final = 2**62
"""A time later than that of any row."""
_INGEST_TIME: Final = "ingest_time"


class Batch(BaseModel):
    """Commits of a table, ``first_version`` to ``version``: one, or old ones that were summed up.

    ``note``: that of the last batch of a query (or of a marking) in them. ``first_us`` and ``last_us`` enclose the
    ``ingest_time`` of the rows they added (microseconds since 1970); None: they added none, or the table has no such
    column. ``event_types``, ``first_date`` and ``last_date`` are those of the events without heartbeats, where they are
    partitions. ``at_ms``: when the last was committed, by its writer's clock. ``is_end``: a reader has stopped
    after the last one, so that later ones are not added to them.
    """

    model_config = ConfigDict(frozen=True)

    first_version: int
    version: int
    at_ms: int = 0
    note: CommitNote | None = None
    first_us: int | None = None
    last_us: int | None = None
    event_types: tuple[str, ...] = ()
    first_date: date | None = None
    last_date: date | None = None
    is_end: bool = False


class Batches(BaseModel):
    """The content of a table's log from version ``begins`` to ``version``; commits that say nothing are left out.

    ``stamp`` is that of the commit of ``version``: a different table in the same place has a different one.
    """

    model_config = ConfigDict(frozen=True)

    version: int = -1
    begins: int = 0
    stamp: str = ""
    batches: tuple[Batch, ...] = ()

    def note_of(self, name: str, *, until: int | None = None) -> CommitNote | None:
        """The last note of a query, or of another writer that records its progress, up to version ``until``."""
        found = (batch.note for batch in reversed(self.batches) if until is None or batch.version <= until)
        return next((note for note in found if note and (note.query or note.writer) == name), None)

    def of(self, first: int, last: int) -> list[Batch]:
        """The batches that have a version from ``first`` to ``last``."""
        return [batch for batch in self.batches if batch.version >= first and batch.first_version <= last]

    def last_arrival(self, version: int) -> int | None:
        """The last ``ingest_time`` (microseconds since 1970) up to ``version``, if all later rows came in later.

        None: that is not so, or not known, because batches around it were summed up.
        """
        until = [batch for batch in self.batches if batch.first_version <= version]
        last_us = max((batch.last_us for batch in until if batch.last_us is not None), default=EVER_US)
        later = [
            batch.first_us for batch in self.batches if batch.first_version > version and batch.first_us is not None
        ]
        is_apart = until and until[-1].version <= version and last_us < min(later, default=EVER_US)
        return last_us if is_apart else None

    def arrivals(self, first: int, last: int) -> tuple[int, int] | None:
        """The first and the last ``ingest_time`` (microseconds since 1970) of rows in these versions; None: no rows."""
        found = [batch for batch in self.of(first, last) if batch.first_us is not None]
        ends = [(batch.first_us or 0, batch.last_us or EVER_US) for batch in found]
        if first < self.begins:
            ends.append((0, ends[0][1] if ends else EVER_US))  # the rows of these versions are unknown
        return (min(begin for begin, _ in ends), max(end for _, end in ends)) if ends else None


def batch_in(commit: bytes, table: Table, version: int) -> Batch:
    """The batch that ``commit``, a file of the log of ``table``, records."""
    info = info_in(commit)
    note = read_note(info.get("userMetadata"))
    batch = Batch(
        first_version=version,
        version=version,
        at_ms=int(info.get("timestamp") or 0),
        note=note if note and note.reached else None,
    )
    lines = [json.loads(line) for line in commit.splitlines() if line.startswith((b'{"add"', b'{"remove"'))]
    # A commit that also deletes rows, as an erasure does, only rewrites the rows that it adds.
    is_rewrite = any(action["remove"].get("dataChange", True) for action in lines if "remove" in action)
    if is_rewrite or _INGEST_TIME not in table.stats_columns:
        return batch
    return reduce(_with_file, (action["add"] for action in lines if "add" in action), batch)


def _with_file(batch: Batch, file: dict[str, Any]) -> Batch:
    partition, stats = file["partitionValues"], json.loads(file.get("stats") or "{}")
    event_type, day = partition.get("event_type"), partition.get("event_date")
    if not file.get("dataChange", True) or event_type == HEARTBEAT or stats.get("numRecords") == 0:
        return batch
    first, last = (stats.get(end, {}).get(_INGEST_TIME) for end in ("minValues", "maxValues"))
    dates = [date.fromisoformat(day)] * 2 if day else [None, None]
    own = Batch(
        first_version=batch.version,
        version=batch.version,
        first_us=_us(first) if first else 0,
        # Statistics are truncated to milliseconds.
        last_us=_us(last) + 999 if last else EVER_US,
        event_types=(event_type,) if event_type else (),
        first_date=dates[0],
        last_date=dates[1],
    )
    return _summed(batch, own).model_copy(update={"at_ms": batch.at_ms})


def _us(time: str) -> int:
    return microseconds(datetime.fromisoformat(time) - EPOCH)


def thinned(batches: Sequence[Batch]) -> tuple[Batch, ...]:
    """``batches`` with old ones summed up: a sum stays a sum, and there are fewer than 2,000 in ten years."""
    old, whole = batches[:-_WHOLE], batches[-_WHOLE:]
    if not old:
        return tuple(whole)
    now_ms = whole[-1].at_ms
    ends = accumulate((batch.is_end for batch in old), initial=0)
    groups = groupby(
        zip(ends, map(_brief, old), strict=False),
        lambda one: (one[0], _place(now_ms - one[1].at_ms, one[1].at_ms)),
    )
    return (*(summed(batch for _, batch in members) for _, members in groups), *whole)


def summed(batches: Iterable[Batch]) -> Batch:
    """One or more ``batches`` that follow each other, as one."""
    return reduce(_summed, map(_brief, batches))


def _place(age_ms: int, at_ms: int) -> tuple[int, int]:
    step = next((step for until, step in _STEPS if age_ms <= until), _OLDEST_STEP)
    return step, at_ms // step


def _brief(batch: Batch) -> Batch:
    """``batch`` without the fields that only the last one of a query needs."""
    note = batch.note
    if note is None or note.query is None:
        return batch
    versions = [version_reached(end) for end in note.reached if isinstance(end, dict) and "reservoirVersion" in end]
    reached: list[JsonValue] = [{"reservoirVersion": min(versions), "index": 0}] if versions else [0]
    brief = CommitNote(
        writer=note.writer, batch=note.batch, query=note.query, watermark_ms=note.watermark_ms, reached=reached
    )
    return batch.model_copy(update={"note": brief})


def _summed(one: Batch, other: Batch) -> Batch:
    note = other.note or one.note
    if note and one.note and one.note.watermark_ms > note.watermark_ms:
        note = note.model_copy(update={"watermark_ms": one.note.watermark_ms})
    return Batch(
        first_version=one.first_version,
        version=other.version,
        at_ms=other.at_ms,
        note=note,
        first_us=_least(one.first_us, other.first_us),
        last_us=_most(one.last_us, other.last_us),
        event_types=tuple(sorted({*one.event_types, *other.event_types})),
        first_date=_least(one.first_date, other.first_date),
        last_date=_most(one.last_date, other.last_date),
        is_end=other.is_end,
    )


def _least(one: T | None, other: T | None) -> T | None:
    return min((value for value in (one, other) if value is not None), default=None)


def _most(one: T | None, other: T | None) -> T | None:
    return max((value for value in (one, other) if value is not None), default=None)
