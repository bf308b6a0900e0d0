"""Reads a small Delta table without Spark: its log, and then its files as a whole."""

import io
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from spark_jobs.contracts.errors import LakeError
from spark_jobs.contracts.tables import Table
from spark_jobs.lake.layout import Lake, commit_key

_READER_VERSION = 1
"""Of Delta's protocol: tables without deletion vectors, column mapping and the like."""


def read_small(lake: Lake, table: Table) -> list[dict[str, Any]]:
    """The rows of ``table``, which is not partitioned, each by the names of its columns; none if it does not exist.

    Times are with zone (UTC). A column that is missing in an older file is None.

    Raises:
        LakeError: the log has a gap, or the table has features that this reader does not know.
    """
    newest = lake.newest_commit(table.path)
    if newest is None:
        return []
    rows: list[dict[str, Any]] = []
    for name in _live_files(lake, table, newest):
        data = lake.files.read(f"{table.path}/{name}")
        if data is None:
            raise LakeError(f"{lake.place(table.path)}: its file {name} is missing; was it vacuumed while it was read?")
        rows += pq.read_table(pa.BufferReader(data)).to_pylist()
    return [{column.name: row.get(column.name) for column in table.columns} for row in rows]


def _live_files(lake: Lake, table: Table, newest: int) -> list[str]:
    """The files of version ``newest``, relative to the table."""
    live: dict[str, None] = {}
    for action in _actions(lake, table, newest):
        if (protocol := action.get("protocol")) and protocol["minReaderVersion"] > _READER_VERSION:
            raise LakeError(
                f"{lake.place(table.path)} needs version {protocol['minReaderVersion']} of Delta's reader protocol; "
                f"adloom reads {_READER_VERSION} there: delete the table, and it is written anew"
            )
        if added := action.get("add"):
            live[unquote(added["path"])] = None
        if removed := action.get("remove"):
            live.pop(unquote(removed["path"]), None)
    return list(live)


def _actions(lake: Lake, table: Table, newest: int) -> Iterator[dict[str, Any]]:
    """The actions in the log, from its last checkpoint on, oldest first."""
    log, first = f"{table.path}/_delta_log", 0
    if pointer := lake.files.read(f"{log}/_last_checkpoint"):
        version = int(json.loads(pointer)["version"])
        checkpoint = lake.files.read(f"{log}/{version:020}.checkpoint.parquet")
        if checkpoint is not None:
            first = version + 1
            yield from pq.read_table(io.BytesIO(checkpoint), columns=["add.path", "protocol"]).to_pylist()
    for version in range(first, newest + 1):
        commit = lake.files.read(commit_key(table, version))
        if commit is None:
            raise LakeError(f"{lake.place(log)}: version {version} is missing between {first} and {newest}")
        yield from map(json.loads, commit.splitlines())
