"""The changes that the commits of a table made, from its log alone: no Spark, and no row is read."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from spark_jobs.contract.tables import Table
from spark_jobs.errors import LakeError
from spark_jobs.lake.layout import Lake, commit_key
from spark_jobs.lake.notes import CommitNote, note_in
from spark_jobs.lake.table_files import TableFile, file_of


@dataclass(frozen=True)
class Commit:
    """A commit: the files whose rows it added and removed. Rows that it only moved to other files do not count."""

    version: int
    note: CommitNote | None
    added: tuple[TableFile, ...]
    removed: tuple[TableFile, ...]

    @property
    def is_empty(self) -> bool:
        """Whether no row changed."""
        return not self.added and not self.removed

    def is_of(self, query: str) -> bool:
        """Whether the commit is a batch of ``query``, or was written by its reset."""
        return self.note is not None and self.note.query == query

    def is_by(self, writer: str) -> bool:
        """Whether the commit was written by ``writer``, which is not a query."""
        return self.note is not None and self.note.writer.startswith(writer) and self.note.query is None


def commits(lake: Lake, table: Table, first: int, last: int) -> Iterator[Commit]:
    """The commits of ``table`` from version ``first`` to ``last``.

    Raises:
        LakeError: the log does not reach back to ``first``.
    """
    for version in range(first, last + 1):
        commit = lake.files.read(commit_key(table, version))
        if commit is None:
            raise LakeError(
                f"the log of {table.path} in {lake.root} has no commit {version} any more, so what it added is not "
                "known: Delta removes commits after 30 days (delta.logRetentionDuration); `adloom ledger --from-now` "
                "starts the ledger over"
            )
        yield commit_in(commit, table, version)


def commit_in(commit: bytes, table: Table, version: int) -> Commit:
    """The change of ``commit``, a file of the log of ``table``."""
    added, removed = [], []
    for line in commit.splitlines():
        action = json.loads(line) if line.startswith((b'{"add"', b'{"remove"')) else {}
        if "add" in action and action["add"].get("dataChange", True):
            added.append(file_of(action["add"], table))
        elif "remove" in action and action["remove"].get("dataChange", True):
            removed.append(file_of(action["remove"], table))
    return Commit(version, note_in(commit), tuple(added), tuple(removed))


class BatchSpan(NamedTuple):
    """Versions of a table that a query read in one batch, ``first`` to ``last``, and its watermark in milliseconds.

    ``received``: the first and the last ``ingest_time`` of their rows (microseconds since 1970); None: they have none.
    """

    first: int
    last: int
    watermark_ms: int
    received: tuple[int, int] | None = None
