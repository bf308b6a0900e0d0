"""A reader of Delta tables that knows neither Spark nor Delta's libraries: it replays the log and reads the files."""

import json
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

import duckdb

from spark_jobs.config.settings import Settings
from spark_jobs.contract.events import HEARTBEAT
from spark_jobs.contract.tables import (
    ATTRIBUTIONS,
    CAMPAIGN_STATS,
    MOVING_AVERAGES,
    SESSIONS,
    SILVER_EVENTS,
    USER_STATUS,
    Column,
    Table,
)
from spark_jobs.lake.layout import Lake
from spark_jobs.ledger.ledger_files import last_ledger
from spark_jobs.ledger.model import Ledger
from tests.support.oracle import Row

GOLD = (ATTRIBUTIONS, SESSIONS, CAMPAIGN_STATS, MOVING_AVERAGES, USER_STATUS)
"""The tables that repairs and replays correct."""
_STRUCT_FIELD = re.compile(r"(\w+): (\w+)")
_COMMIT = re.compile(r"(\d{20})\.json")
_CLASSIC_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.parquet")
_COPIES: dict[str, "tempfile.TemporaryDirectory[str]"] = {}
"""By root, copies of lakes in object stores."""
_READER_VERSION = 3
_READER_FEATURES = {"timestampNtz", "deletionVectors"}


class RunLake(Protocol):
    """The fixture ``run_lake``: runs the pipeline over a folder of files and tells where the lake lies."""

    def __call__(
        self,
        source: Path,
        *,
        settings: Settings | None = None,
        drain: bool = True,
        measure: bool = False,
        lake: Lake | None = None,
    ) -> Lake:
        """Run with ``settings`` (the defaults if None), to the end of all events if ``drain``.

        Without the job ``measure`` unless asked for: it costs seconds. The lake is ``lake``, or the one lake that every
        test has of its own.
        """
        ...


@dataclass
class _Snapshot:
    """The live files of a table, each with its partition values as the log spells them."""

    files: dict[str, dict[str, str | None]] = field(default_factory=dict)

    def apply(self, action: dict[str, Any]) -> None:
        if protocol := action.get("protocol"):
            unknown = set(protocol.get("readerFeatures") or []) - _READER_FEATURES
            assert protocol["minReaderVersion"] <= _READER_VERSION, f"cannot read a Delta table with {protocol}"
            assert not unknown, f"cannot read a Delta table with {protocol}"
        if metadata := action.get("metaData"):
            mapping = dict(metadata.get("configuration") or {}).get("delta.columnMapping.mode", "none")
            assert mapping == "none", f"cannot read a Delta table with column mapping {mapping!r}"
        if added := action.get("add"):
            assert not added.get("deletionVector"), f"cannot read a deletion vector: {added['path']}"
            self.files[added["path"]] = dict(added["partitionValues"])
        if removed := action.get("remove"):
            self.files.pop(removed["path"], None)


def read_table(lake: Lake, table: Table, *, heartbeats: bool = False) -> list[Row]:
    """The rows of ``table`` in its column order, in no particular order; no rows if the table does not exist.

    Times are UTC without a zone, arrays of structs lists of tuples. Silver's heartbeats are left out unless asked for.
    """
    if not lake.has(table):
        return []
    folder = _local(lake, table.path)
    partitions = {_location(folder, path): values for path, values in live_files(folder).items()}
    rows: list[Row] = []
    with duckdb.connect() as connection:
        for file, values in partitions.items():
            # A file that is older than a column does not have it.
            known = connection.execute("DESCRIBE FROM read_parquet($file)", {"file": str(file)}).fetchall()
            names = {name for name, *_ in known}
            stored = ", ".join(
                _selected(c) if c.name in names else "NULL" for c in table.columns if c.name not in table.partition_by
            )
            query = f"SELECT {stored} FROM read_parquet($file, hive_partitioning = false)"
            constants = {name: values[name] for name in table.partition_by}
            for row in connection.execute(query, {"file": str(file)}).fetchall():
                stored_values = iter(row)
                rows.append(
                    tuple(
                        _constant(c, constants[c.name]) if c.name in constants else next(stored_values)
                        for c in table.columns
                    )
                )
    if heartbeats or table.path != SILVER_EVENTS.path:
        return rows
    event_type = table.column_names.index("event_type")
    return [row for row in rows if row[event_type] != HEARTBEAT]


def _local(lake: Lake, key: str) -> Path:
    """``key`` of ``lake`` as a folder: the lake's own, or a copy brought up to date; its files never change."""
    if lake.is_local:
        return lake.path / key
    if lake.root not in _COPIES:
        _COPIES[lake.root] = tempfile.TemporaryDirectory()
    copy = Path(_COPIES[lake.root].name)
    for found in lake.files.walk(key):
        if not (copy / found.key).exists():
            (copy / found.key).parent.mkdir(parents=True, exist_ok=True)
            (copy / found.key).write_bytes(lake.files.read(found.key) or b"")
    return copy / key


def live_files(folder: Path) -> dict[str, dict[str, str | None]]:
    """The files that make up the newest version of the Delta table in ``folder``, with their partition values."""
    snapshot = _Snapshot()
    for action in _actions(folder / "_delta_log"):
        snapshot.apply(action)
    return snapshot.files


def rows_by_name(lake: Lake, table: Table) -> list[dict[str, Any]]:
    """The rows of ``table``, each by the names of its columns; see :func:`read_table`."""
    return [dict(zip(table.column_names, row, strict=True)) for row in read_table(lake, table)]


def read_ledger(lake: Lake) -> Ledger:
    """The ledger of ``lake`` as of its last update."""
    ledger = last_ledger(lake)
    assert ledger is not None, f"{lake.root} has no ledger"
    return ledger


def _actions(log: Path) -> Iterator[dict[str, Any]]:
    """Every action from the log's beginning, or from its newest checkpoint if the beginning has been cleaned away."""
    commits = {int(m[1]): path for path in log.iterdir() if (m := _COMMIT.fullmatch(path.name))}
    first = 0
    if 0 not in commits:
        checkpoints = {int(m[1]): path for path in log.iterdir() if (m := _CLASSIC_CHECKPOINT.fullmatch(path.name))}
        assert checkpoints, f"{log}: neither version 0 nor a single-file checkpoint; this reader knows no other kind"
        first = max(checkpoints) + 1
        with duckdb.connect() as connection:
            cursor = connection.execute("FROM read_parquet($file)", {"file": str(checkpoints[first - 1])})
            names = [column[0] for column in cursor.description or ()]
            yield from (dict(zip(names, row, strict=True)) for row in cursor.fetchall())
    last = max(commits, default=first - 1)
    for version in range(first, last + 1):
        assert version in commits, f"{log}: version {version} is missing between {first} and {last}"
        for line in commits[version].read_text(encoding="utf-8").splitlines():
            yield json.loads(line)


def _location(folder: Path, path: str) -> Path:
    """Where a log's ``path`` lies: percent-encoded, and relative to ``folder`` unless it is a URI."""
    parts = urlsplit(path)
    assert parts.scheme in ("", "file"), f"{path}: only local files can be read"
    return folder / unquote(parts.path)


def _selected(column: Column) -> str:
    if column.sql_type.startswith("ARRAY<STRUCT"):
        fields = [_value(f"e.{name}", kind) for name, kind in _STRUCT_FIELD.findall(column.sql_type)]
        return f"list_transform({column.name}, lambda e: row({', '.join(fields)}))"
    return _value(column.name, column.sql_type)


def _value(name: str, kind: str) -> str:
    return f"make_timestamp(epoch_us({name}))" if kind == "TIMESTAMP" else name


def _constant(column: Column, text: str | None) -> str | date | None:
    if text is None or column.sql_type == "STRING":
        return text
    assert column.sql_type == "DATE", f"{column.name}: partition values of type {column.sql_type} cannot be read"
    return date.fromisoformat(text)
