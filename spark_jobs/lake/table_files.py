"""The files of a Delta table, from its log alone: no Spark, and no row is read."""

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from spark_jobs.contracts.errors import LakeError
from spark_jobs.contracts.tables import Table
from spark_jobs.lake.layout import Lake, commit_key


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


def live_files(lake: Lake, table: Table, version: int) -> list[TableFile]:
    """The files that hold the rows of ``version``, in the order in which they came.

    Raises:
        LakeError: the log has a gap, or the table has deletion vectors.
    """
    live: dict[str, TableFile] = {}
    for action in _actions(lake, table, version):
        if added := action.get("add"):
            if added.get("deletionVector"):
                raise LakeError(f"{lake.place(table.path)} has deletion vectors; switch them off and compact it")
            file = file_of(added, table)
            live[file.key] = file
        if removed := action.get("remove"):
            live.pop(file_of(removed, table).key, None)
    return list(live.values())


def _actions(lake: Lake, table: Table, version: int) -> Iterator[dict[str, Any]]:
    """The actions in the log, oldest first, from where they give all live files.

    That is the last commit that replaced the whole table, the last checkpoint, or the first commit.
    """
    log, found = f"{table.path}/_delta_log", list[list[dict[str, Any]]]()
    checkpoint = _last_checkpoint(lake, log, version)
    for number in range(version, checkpoint, -1):
        commit = lake.files.read(commit_key(table, number))
        if commit is None:
            raise LakeError(f"{lake.place(log)}: version {number} is missing between {checkpoint} and {version}")
        actions = [json.loads(line) for line in commit.splitlines()]
        found.append(actions)
        if any(_replaces_all(action.get("commitInfo") or {}) for action in actions):
            break
    else:
        if checkpoint >= 0:
            yield from _in_checkpoint(lake, log, checkpoint)
    for actions in reversed(found):
        yield from actions


def _in_checkpoint(lake: Lake, log: str, checkpoint: int) -> list[dict[str, Any]]:
    data = lake.files.read(f"{log}/{checkpoint:020}.checkpoint.parquet")
    if data is None:
        raise LakeError(
            f"{lake.place(log)}: its checkpoint {checkpoint} is missing, or of a kind that is not read here"
        )
    return [action for action in rows_in(data, columns=["add"]) if action["add"]]


def _last_checkpoint(lake: Lake, log: str, version: int) -> int:
    """The version of the last checkpoint, if it does not come after ``version``; -1: there is none."""
    pointer = lake.files.read(f"{log}/_last_checkpoint")
    last = int(json.loads(pointer)["version"]) if pointer else -1
    return last if last <= version else -1


def _replaces_all(info: dict[str, Any]) -> bool:
    parameters = info.get("operationParameters") or {}
    return parameters.get("mode") == "Overwrite" and "predicate" not in parameters


def rows_in(data: bytes, columns: list[str] | None = None) -> list[dict[str, Any]]:
    """The rows of a Parquet file."""
    import pyarrow.parquet as pq  # noqa: PLC0415 DAG files load this module

    # Without Arrow's pools of threads: a process that ends right after it has started them can abort.
    with pq.ParquetFile(io.BytesIO(data), pre_buffer=False) as file:
        rows: list[dict[str, Any]] = file.read(columns, use_threads=False).to_pylist()
        return rows
