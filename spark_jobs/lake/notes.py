"""The note in the user metadata of a table's commit: its batch, and the progress of its writer."""

import json
from datetime import datetime
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from spark_jobs.config.durations import time_of_us

NOTHING: Final = -(2**63)
"""A frontier of event time behind every event: see :func:`frontier_of`."""
EVERYTHING: Final = 2**63 - 1
"""A frontier ahead of every event."""
_NO_OFFSET = "-"


class BatchPlan(BaseModel):
    """The plan that Spark writes to a checkpoint before it runs a batch."""

    model_config = ConfigDict(frozen=True)

    watermark_ms: int
    reached: list[JsonValue]
    at_ms: int = 0
    """When it was planned, in milliseconds since 1970: the ``ingest_time`` of its rows, unless its note has another."""


class CommitNote(BaseModel):
    """The writer of a commit, and how far it had read.

    With notes a table shows by itself where its writer must resume, whatever happens to the writer's checkpoint.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    writer: str
    """Id of the query, from its checkpoint; of another writer its name."""
    batch: int
    query: str | None = None
    """Name of the query."""
    watermark_ms: int = 0
    """The watermark under which the batch ran, in milliseconds since 1970; 0 before there was one."""
    reached: list[JsonValue] = []
    """For each source of the query, where the batch ends in it, as Spark's source writes it."""
    final_before_ms: int = 0
    """In a table of windows: windows that end by then, in milliseconds since 1970, are final. A reset keeps them."""
    received_us: int = 0
    """The ``ingest_time`` of its rows, in microseconds since 1970, if the clock had gone back since the batch before;
    0: when the batch was planned."""

    @property
    def watermark(self) -> datetime | None:
        """The watermark under which the batch ran (UTC); None before there was one."""
        return time_of_us(self.watermark_ms * 1000) if self.watermark_ms else None

    def as_metadata(self) -> str:
        """The note as user metadata of a commit, without unset fields."""
        return self.model_dump_json(exclude_defaults=True)


def adds_rows(commit: bytes) -> bool:
    """Whether ``commit``, a file of a table's log, adds rows; compaction and the like only move them."""
    added = (json.loads(line)["add"] for line in commit.splitlines() if line.startswith(b'{"add"'))
    return any(file["dataChange"] for file in added)


def note_in(commit: bytes) -> CommitNote | None:
    """The note in ``commit``, a file of a table's log; None if it has none."""
    info = info_in(commit)
    return read_note(info.get("userMetadata")) if info else None


def committed_at(commit: bytes) -> datetime | None:
    """When ``commit``, a file of a table's log, was made by its writer's clock (UTC); None if it does not say."""
    time_ms = info_in(commit).get("timestamp")
    return None if time_ms is None else time_of_us(int(time_ms) * 1000)


def info_in(commit: bytes) -> dict[str, Any]:
    """The information that ``commit``, a file of a table's log, gives about itself."""
    for line in commit.splitlines():
        if line.startswith(b'{"commitInfo"'):
            return dict(json.loads(line)["commitInfo"])
    return {}


def read_note(user_metadata: str | None) -> CommitNote | None:
    """The note in ``user_metadata``; None if it is not one."""
    try:
        return CommitNote.model_validate_json(user_metadata or "")
    except ValidationError:
        return None


def read_plan(text: bytes) -> BatchPlan:
    """The plan in ``text``: line by line a version, the metadata, and for each source where the batch ends in it.

    Raises:
        ValueError: the text is damaged.
    """
    try:
        _version, metadata, *reached = text.decode().splitlines()
        offsets = [json.loads(offset) for offset in reached if offset != _NO_OFFSET]
        known = json.loads(metadata)
        watermark_ms = known["batchWatermarkMs"]
        return BatchPlan(watermark_ms=watermark_ms, reached=offsets, at_ms=known.get("batchTimestampMs", 0))
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"not the plan of a batch: {error!r}") from error


def version_reached(offset: Any) -> int:
    """The last version of a Delta table that a batch took in, from the source's own note of its end.

    Where rows are held back (see :mod:`spark_jobs.ingest.alignment`), the last version before those that have such
    rows: it and all before are read to the last row.
    """
    if frontier_of(offset) is None:
        return version_opened(offset)
    return version_opened(offset["held_from"]) if offset["held_from"] else -1


def version_opened(offset: Any) -> int:
    """The last version of which a batch read rows, and perhaps not all: see :func:`version_reached`."""
    version, index = int(offset["reservoirVersion"]), int(offset["index"])
    return version - 1 if index < 0 else version


def before_rows_at_rest(offset: Any, version: int) -> dict[str, JsonValue]:
    """The position, in the table of ``offset``, before the first of the rows that lie there at ``version``."""
    whole = {**offset, "reservoirVersion": version + 1, "index": -1, "isStartingVersion": False}
    whole = {name: value for name, value in whole.items() if name not in {"frontier_us", "held_from"}}
    return {**whole, "frontier_us": NOTHING, "held_from": None, "at_rest_until": whole}


def is_at_rest(offset: Any) -> bool:
    """Whether a batch has read a part of the rows that were there when its query began, and more of them are left."""
    return "at_rest_until" in offset


def frontier_of(offset: Any) -> int | None:
    """The event time (microseconds since 1970) after which rows are held back; None: none is."""
    found = offset.get("frontier_us")
    return None if found is None else int(found)
