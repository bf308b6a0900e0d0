"""The files of a Delta table, from its log alone: no Spark, and no row is read."""

import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from spark_jobs.contract.tables import Table
from spark_jobs.errors import LakeError
from spark_jobs.lake.layout import Lake, commit_key

_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.parquet")


@dataclass(frozen=True)
class TableFile:
    """A Parquet file of a table; ``rows`` is None if the log does not say. ``partition`` has values as text."""

    key: str
    rows: int | None
    partition: dict[str, str | None]


def file_of(action: dict[str, Any], table: Table) -> TableFile:
    """The file that an action ``add`` or ``remove`` names."""
    rows = json.loads(action.get("stats") or "{}").get("numRecords")
    # In a checkpoint, a map is a list of pairs.
    return TableFile(f"{table.path}/{unquote(action['path'])}", rows, dict(action.get("partitionValues") or {}))


@dataclass(frozen=True)
class Snapshot:
    """A version of a table: its files in the order in which they were added, and its metadata as Delta writes them."""

    files: tuple[TableFile, ...]
    metadata: dict[str, Any]


def live_files(lake: Lake, table: Table, version: int) -> list[TableFile]:
    """The files with the rows of ``version``, in the order in which they were added.

    Raises:
        LakeError: the log has a gap, or the table has deletion vectors.
    """
    return _live(_History(lake, table, version), lake, table)


def _live(history: "_History", lake: Lake, table: Table) -> list[TableFile]:
    live: dict[str, TableFile] = {}
    for action in _file_actions(history):
        if added := action.get("add"):
            if added.get("deletionVector"):
                raise LakeError(f"{lake.shown(table.path)} has deletion vectors; switch them off and compact it")
            file = file_of(added, table)
            live[file.key] = file
        if removed := action.get("remove"):
            live.pop(file_of(removed, table).key, None)
    return list(live.values())


def snapshot(lake: Lake, table: Table, version: int) -> Snapshot:
    """The files of ``version`` and its metadata.

    Raises:
        LakeError: the log has a gap, or the table has deletion vectors.
    """
    history = _History(lake, table, version)
    return Snapshot(tuple(_live(history, lake, table)), _metadata(history))


def last_transaction(lake: Lake, table: Table, writer: str) -> int:
    """The last number under which ``writer`` has committed to ``table``; 0 without one, or without the table.

    Delta silently skips an append of this writer whose number is not greater.

    Raises:
        LakeError: the log has a gap.
    """
    version = lake.newest_commit(table.path)
    if version is None:
        return 0
    history = _History(lake, table, version)
    for actions in history.commits():
        for action in actions:
            if "txn" in action and action["txn"]["appId"] == writer:
                return int(action["txn"]["version"])
    marks = history.in_checkpoint("txn")
    return max((int(one["txn"]["version"]) for one in marks if one["txn"]["appId"] == writer), default=0)


class _History:
    """The log of a table up to a version, read from its end."""

    def __init__(self, lake: Lake, table: Table, version: int) -> None:
        self._lake, self._table, self._version = lake, table, version
        self._log = f"{table.path}/_delta_log"
        self._read: list[list[dict[str, Any]]] = []
        self.checkpoint = self._last_checkpoint()

    def commits(self) -> Iterator[list[dict[str, Any]]]:
        """The actions of each commit after the checkpoint, newest first."""
        yield from self._read
        for number in range(self._version - len(self._read), self.checkpoint, -1):
            commit = self._lake.files.read(commit_key(self._table, number))
            if commit is None:
                place, before = self._lake.shown(self._log), max(self.checkpoint, 0)
                raise LakeError(f"{place}: version {number} is missing between {before} and {self._version}")
            self._read.append([json.loads(line) for line in commit.splitlines()])
            yield self._read[-1]

    def in_checkpoint(self, kind: str) -> list[dict[str, Any]]:
        """The actions of ``kind`` in the checkpoint; none if there is no checkpoint."""
        if self.checkpoint < 0:
            return []
        data = self._lake.files.read(f"{self._log}/{self.checkpoint:020}.checkpoint.parquet")
        if data is None:
            place = self._lake.shown(self._log)
            raise LakeError(f"{place}: its checkpoint {self.checkpoint} is missing, or of a kind that is not read here")
        return [action for action in rows_in(data, columns=[kind]) if action[kind]]

    def _last_checkpoint(self) -> int:
        """The version of the last checkpoint that does not come after this one; -1 if there is no such checkpoint."""
        pointer = self._lake.files.read(f"{self._log}/_last_checkpoint")
        last = int(json.loads(pointer)["version"]) if pointer else -1
        if last <= self._version:
            return last
        found = checkpoints_in(self._lake, self._table)
        return max((one for one in found if one <= self._version), default=-1)


def checkpoints_in(lake: Lake, table: Table) -> list[int]:
    """The versions of the checkpoints in the log of ``table``, ascending."""
    found = map(_CHECKPOINT.fullmatch, lake.files.names(f"{table.path}/_delta_log"))
    return sorted(int(name[1]) for name in found if name)


def _file_actions(history: _History) -> Iterator[dict[str, Any]]:
    """The actions in the log, oldest first, from where they cover all live files.

    That is the last commit that replaced the whole table, the last checkpoint, or the first commit.
    """
    found = list[list[dict[str, Any]]]()
    for actions in history.commits():
        found.append(actions)
        if any(_replaces_all(action.get("commitInfo") or {}) for action in actions):
            break
    else:
        yield from history.in_checkpoint("add")
    for actions in reversed(found):
        yield from actions


def _metadata(history: _History) -> dict[str, Any]:
    for actions in history.commits():
        for action in actions:
            if "metaData" in action:
                return dict(action["metaData"])
    (last,) = history.in_checkpoint("metaData")
    return dict(last["metaData"])


def _replaces_all(info: dict[str, Any]) -> bool:
    parameters = info.get("operationParameters") or {}
    return parameters.get("mode") == "Overwrite" and "predicate" not in parameters


def rows_in(data: bytes, columns: list[str] | None = None) -> list[dict[str, Any]]:
    """The rows of a Parquet file."""
    import pyarrow.parquet as pq  # noqa: PLC0415 DAG files load this module

    # Without Arrow's thread pools: a process that ends right after it has started them may abort.
    with pq.ParquetFile(io.BytesIO(data), pre_buffer=False) as file:
        rows: list[dict[str, Any]] = file.read(columns, use_threads=False).to_pylist()
        return rows


def read_small(lake: Lake, table: Table) -> list[dict[str, Any]]:
    """The rows of ``table``, which is not partitioned, each by the names of its columns; none if it does not exist.

    Times are with zone (UTC). A column that is missing in an older file is None.

    Raises:
        LakeError: the log has a gap, or a file is missing.
    """
    newest = lake.newest_commit(table.path)
    if newest is None:
        return []
    rows: list[dict[str, Any]] = []
    for file in live_files(lake, table, newest):
        data = lake.files.read(file.key)
        if data is None:
            raise LakeError(f"{lake.shown(file.key)} is missing; was it vacuumed while the table was read?")
        rows += rows_in(data)
    return [{column.name: row.get(column.name) for column in table.columns} for row in rows]
