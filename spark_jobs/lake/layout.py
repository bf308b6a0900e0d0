"""A lake: its root, its small files, and the versions of its tables."""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

from spark_jobs.contract.tables import Table
from spark_jobs.lake.store.files import LOCAL, Files
from spark_jobs.places import REPORTS

_COMMIT = re.compile(r"(\d{20})\.json")


@dataclass(frozen=True)
class Lake:
    """A lake: its root as a URI without a trailing slash, and its small files.

    Spark's inputs and outputs are named by URI, small files by their key in ``files``.
    """

    root: str
    files: Files = field(compare=False, repr=False)

    @property
    def is_local(self) -> bool:
        """Whether it is on this machine's disks."""
        return self.root.startswith(LOCAL)

    @property
    def path(self) -> Path:
        """The root of a local lake as a path."""
        assert self.is_local, f"{self.root} has no local path"  # noqa: S101 a mistake of the caller
        return Path(self.root.removeprefix(LOCAL))

    def shown(self, key: str = "") -> str:
        """``key`` as shown to people: a path if the lake is local, otherwise a URI."""
        return str(self.path / key) if self.is_local else f"{self.root}/{key}".rstrip("/")

    def table(self, table: Table) -> str:
        """URI of ``table``."""
        return self.uri(table.path)

    def numbers(self, key: str) -> list[int]:
        """The names in the folder ``key`` that are numbers, ascending."""
        return sorted(int(name) for name in self.files.names(key) if name.isdigit())

    def uri(self, key: str) -> str:
        """The URI of ``key``."""
        return f"{self.root}/{key}"

    def failing_rows(self, table: Table) -> str:
        """URI of the Delta table of the rows of ``table`` that failed validation, with their reasons."""
        return self.uri(failing_rows_key(table))

    def has(self, table: Table) -> bool:
        """Whether ``table`` exists."""
        return self.is_table(table.path)

    def is_table(self, key: str) -> bool:
        """Whether there is a Delta table at ``key``; a writer that was killed during its first commit leaves none."""
        return self.newest_commit(key) is not None

    def newest_commit(self, key: str) -> int | None:
        """The latest version of the Delta table at ``key``; None if it has no commit."""
        # A log holds weeks of commits: those before its last checkpoint need not be listed.
        after = _last_checkpoint(self.files.read(f"{key}/_delta_log/_last_checkpoint"))
        return max(self.commits(key, after=after), default=None)

    def commits(self, key: str, *, after: str = "") -> list[int]:
        """The versions of the Delta table at ``key`` that are in its log, ascending; only names that sort ``after``."""
        names = map(_COMMIT.fullmatch, self.files.names(f"{key}/_delta_log", after=after))
        return sorted(int(name[1]) for name in names if name)


def commit_key(table: Table, version: int) -> str:
    """The commit that created ``version`` of ``table``."""
    return f"{table.path}/_delta_log/{version:020}.json"


def failing_rows_key(table: Table) -> str:
    """See :meth:`Lake.failing_rows`."""
    return f"{REPORTS}/failing_rows/{table.name}"


def _last_checkpoint(text: bytes | None) -> str:
    """A name that sorts before the files of that version in the log; empty if it is missing or cannot be read."""
    try:
        return f"{int(json.loads(text or b'')['version']):020}"
    except (ValueError, KeyError, TypeError):
        return ""
