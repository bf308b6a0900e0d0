"""What a commit of a table tells of the batch that it is: its user metadata."""

import json
import re
from collections.abc import Iterator

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from spark_jobs.contracts.jobs import WRITES
from spark_jobs.contracts.lake import Lake
from spark_jobs.contracts.tables import Table

_COMMIT = re.compile(r"\d{20}\.json")


class CommitNote(BaseModel):
    """Who wrote a commit, and how far the writer had come in what it reads.

    A table so tells by itself where its writer must go on, whatever becomes of the writer's checkpoint.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    writer: str
    """Id of the query, which lies in its checkpoint; or what else wrote."""
    batch: int
    query: str | None = None
    """Name of the query."""
    watermark_ms: int = 0
    """The watermark under which the batch ran, in milliseconds since 1970; 0 before there was one."""
    reached: list[JsonValue] = []
    """For each source of the query, the end of the batch in it, as Spark's source writes it."""


def commit_notes(lake: Lake, table: Table) -> Iterator[CommitNote]:
    """The notes of the commits of ``table`` that bear one, the newest first; each is read when it is asked for."""
    log = f"{table.path}/_delta_log"
    for name in reversed(lake.files.names(log)):
        if _COMMIT.fullmatch(name) and (note := _note_in(lake.files.read(f"{log}/{name}") or b"")):
            yield note


def last_note(lake: Lake, query: str) -> CommitNote | None:
    """The note of the last batch of ``query`` that its table holds; None if it holds none."""
    notes = commit_notes(lake, WRITES[query])
    return next((note for note in notes if note.query == query and note.reached), None)


def _note_in(commit: bytes) -> CommitNote | None:
    for line in commit.splitlines():
        if line.startswith(b'{"commitInfo"'):
            return read_note(json.loads(line)["commitInfo"].get("userMetadata"))
    return None


def read_note(user_metadata: str | None) -> CommitNote | None:
    """The note in ``user_metadata``; None if it holds none."""
    try:
        return CommitNote.model_validate_json(user_metadata or "")
    except ValidationError:
        return None
