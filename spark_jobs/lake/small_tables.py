"""Reads a small Delta table without Spark: its log, and then its files as a whole."""

import io
import json
from typing import Any
from urllib.parse import unquote

from spark_jobs.contracts.errors import LakeError
from spark_jobs.contracts.tables import Table
from spark_jobs.lake.layout import Lake, commit_key


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
    for name in live_files(lake, table, newest):
        data = lake.files.read(f"{table.path}/{name}")
        if data is None:
            raise LakeError(f"{lake.place(table.path)}: its file {name} is missing; was it vacuumed while it was read?")
        rows += _rows_in(data)
    return [{column.name: row.get(column.name) for column in table.columns} for row in rows]


def live_files(lake: Lake, table: Table, newest: int) -> list[str]:
    """The files of version ``newest``, relative to the table.

    Raises:
        LakeError: the log has a gap.
    """
    live: dict[str, None] = {}
    for action in _actions(lake, table, newest):
        if added := action.get("add"):
            if added.get("deletionVector"):
                raise LakeError(f"{lake.place(table.path)} has deletion vectors; switch them off and compact it")
            live[unquote(added["path"])] = None
        if removed := action.get("remove"):
            live.pop(unquote(removed["path"]), None)
    return list(live)


def _actions(lake: Lake, table: Table, newest: int) -> list[dict[str, Any]]:
    """The actions in the log, oldest first, from where they give all live files.

    That is the last commit that replaced the whole table, the last checkpoint, or the first commit.
    """
    log, found = f"{table.path}/_delta_log", list[dict[str, Any]]()
    checkpoint = _last_checkpoint(lake, log)
    for version in range(newest, checkpoint, -1):
        commit = lake.files.read(commit_key(table, version))
        if commit is None:
            raise LakeError(f"{lake.place(log)}: version {version} is missing between {checkpoint} and {newest}")
        actions = [json.loads(line) for line in commit.splitlines()]
        found = actions + found
        if any(_replaces_all(action.get("commitInfo") or {}) for action in actions):
            return found
    if checkpoint < 0:
        return found
    data = lake.files.read(f"{log}/{checkpoint:020}.checkpoint.parquet")
    if data is None:
        raise LakeError(
            f"{lake.place(log)}: its checkpoint {checkpoint} is missing, or of a kind that is not read here"
        )
    live = _rows_in(data, columns=["add.path"])
    return [*(action for action in live if action["add"]), *found]


def _last_checkpoint(lake: Lake, log: str) -> int:
    pointer = lake.files.read(f"{log}/_last_checkpoint")
    return int(json.loads(pointer)["version"]) if pointer else -1


def _replaces_all(info: dict[str, Any]) -> bool:
    parameters = info.get("operationParameters") or {}
    return parameters.get("mode") == "Overwrite" and "predicate" not in parameters


def _rows_in(data: bytes, columns: list[str] | None = None) -> list[dict[str, Any]]:
    """The rows of a Parquet file."""
    import pyarrow.parquet as pq  # noqa: PLC0415 DAG files load this module

    # Without Arrow's pools of threads: a process that ends right after it has started them can abort.
    with pq.ParquetFile(io.BytesIO(data), pre_buffer=False) as file:
        rows: list[dict[str, Any]] = file.read(columns, use_threads=False).to_pylist()
        return rows
