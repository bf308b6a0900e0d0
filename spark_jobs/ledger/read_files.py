"""The rows that commits added, as Arrow tables; and which versions a query read in which batch."""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from spark_jobs.contract.tables import Table
from spark_jobs.errors import LakeError
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.log import Commit
from spark_jobs.lake.notes import frontier_of, version_opened, version_reached
from spark_jobs.lake.table_files import TableFile, live_files
from spark_jobs.queries.places import initial_key

TEXT, NUMBER = pa.string(), pa.int64()
TIME = pa.timestamp("us", "UTC")
Columns = Mapping[str, pa.DataType]
Files = Sequence[tuple[TableFile, Mapping[str, Any]]]
"""Files of a table, each with values that are the same in all its rows."""
_COLUMNS = {"event_type": TEXT, "event_id": TEXT, "event_time": TIME, "user_id": TEXT}


@dataclass(frozen=True)
class Batch:
    """A batch of a query: it read its table up to version ``reached``, under a watermark; ``version`` is its commit.

    Of the versions after ``settled`` it read the rows up to ``frontier_us`` (microseconds since 1970), if that is
    given; the others are held back.
    """

    version: int
    reached: int
    watermark_ms: int
    settled: int
    frontier_us: int | None = None


def batches_in(query: str, found: Iterable[Commit]) -> list[Batch]:
    """The batches of ``query`` among commits of its table, in their order."""
    batches = []
    for change in found:
        if change.is_of(query) and change.note and change.note.reached:
            ends: list[Any] = change.note.reached
            frontier_us = frontier_of(ends[0])
            reached, settled = (min(map(last, ends)) for last in (version_opened, version_reached))
            batches.append(Batch(change.version, reached, change.note.watermark_ms, settled, frontier_us))
    return batches


def read_files(lake: Lake, files: Files, columns: Columns, constants: Columns) -> pa.Table:
    """The rows of ``files`` as one table.

    Args:
        lake: the lake.
        files: each with the values of ``constants`` for its rows.
        columns: which, with their types; null where a file is older than the column.
        constants: columns that are the same in all rows of a file: numbers and texts that are not empty.

    Raises:
        LakeError: a file is gone.
    """
    parts = [
        _with_constants(read_parquet(lake, file.key, columns), values, constants)
        for file, values in files
        if file.rows != 0
    ]
    if parts:
        return pa.concat_tables(parts)
    kinds = {**columns, **constants}
    return pa.Table.from_arrays([pa.nulls(0, kind) for kind in kinds.values()], names=list(kinds))


def read_parquet(lake: Lake, key: str, columns: Columns) -> pa.Table:
    """The ``columns`` of the Parquet file ``key``."""
    data = lake.files.read(key)
    if data is None:
        raise LakeError(
            f"{lake.shown(key)} is gone, so its rows cannot be counted: it was compacted or replaced, and then "
            "vacuumed, before the ledger had seen it; `adloom ledger --from-now` begins it again"
        )
    file = pq.ParquetFile(pa.BufferReader(data), coerce_int96_timestamp_unit="us")
    found = file.read(columns=list(columns), use_threads=False)
    there = set(found.column_names)
    return pa.table(
        [_as(found[name], kind) if name in there else pa.nulls(found.num_rows, kind) for name, kind in columns.items()],
        names=list(columns),
    )


def _as(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    # A cast loads pyarrow's functions, which takes as long as reading a hundred thousand rows.
    return column if pa.types.is_list(kind) or column.type == kind else column.cast(kind)


def _with_constants(rows: pa.Table, values: Mapping[str, Any], constants: Columns) -> pa.Table:
    for name in constants:
        rows = rows.append_column(name, repeated(values[name], rows.num_rows))
    return rows


def repeated(value: int | str, rows: int) -> pa.Array:
    """A column with one value, from its bytes: of other values pyarrow asks if they are pandas', and loads that."""
    if isinstance(value, int):
        return pa.Array.from_buffers(NUMBER, rows, [None, pa.py_buffer(array("q", [value]) * rows)])
    text = value.encode()
    offsets = array("i", range(0, len(text) * (rows + 1), len(text)))
    return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(text * rows))


def late_us_of(version: int, batches: Sequence[Batch]) -> int:
    """The watermark, in microseconds, of the batch in which ``version`` was read; the batches are in their order."""
    return next((batch.watermark_ms * 1000 for batch in batches if version <= batch.reached), 0)


def newest_version(lake: Lake, table: Table) -> int:
    """The newest version of ``table``; -1: it does not exist."""
    newest = lake.newest_commit(table.path)
    return -1 if newest is None else newest


def initial_events(lake: Lake, query: str) -> pa.Table:
    """The events: ``event_type``, ``event_id``, ``event_time``, ``user_id``."""
    copy = Table("initial", initial_key(query), "The initial state of a query.", ())
    newest = lake.newest_commit(copy.path)
    files: Files = [(file, {}) for file in (live_files(lake, copy, newest) if newest is not None else [])]
    return read_files(lake, files, _COLUMNS, {})
