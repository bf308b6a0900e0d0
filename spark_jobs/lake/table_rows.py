"""The rows of a Delta table for engines that read Arrow datasets: without Spark, and only the columns that are used."""

import json
import re
from dataclasses import dataclass
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow.fs import FileSystem

from spark_jobs.contract.tables import Table
from spark_jobs.errors import LakeError
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.table_files import TableFile, snapshot

_SCALARS = {
    "string": pa.string(),
    "long": pa.int64(),
    "integer": pa.int32(),
    "short": pa.int16(),
    "byte": pa.int8(),
    "double": pa.float64(),
    "float": pa.float32(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_SINCE = {
    "STRING": pa.string(),
    "BIGINT": pa.int64(),
    "BOOLEAN": pa.bool_(),
    "TIMESTAMP": pa.timestamp("us", "UTC"),
    "ARRAY<STRING>": pa.list_(pa.field("element", pa.string())),
}
"""Types of columns that were added to tables after their first version."""
_DECIMAL = re.compile(r"decimal\((\d+),(-?\d+)\)")


@dataclass(frozen=True)
class RowStore:
    """The place of the data files of a lake: a file system of Arrow, and the lake's root in it."""

    filesystem: FileSystem
    root: str


def table_rows(lake: Lake, table: Table, version: int, store: RowStore) -> ds.Dataset:
    """The rows of ``version`` of ``table``; a column that it, or a file, does not have yet is null.

    Filters on partition columns skip files. Columns are those of the table, kept ones included, and of the contract.

    Raises:
        LakeError: the log has a gap, or the table has deletion vectors or columns that are not read here.
    """
    found = snapshot(lake, table, version)
    fields = json.loads(found.metadata["schemaString"])["fields"]
    there = [pa.field(one["name"], _arrow_type(one["type"], lake, table)) for one in fields]
    names = {one.name for one in there}
    later = [one for one in table.columns if one.name not in names and one.sql_type in _SINCE]
    schema = pa.schema([*there, *(pa.field(one.name, _SINCE[one.sql_type]) for one in later)])
    # Before adloom wrote times in microseconds, Spark wrote them as INT96.
    file_format = ds.ParquetFileFormat(read_options=ds.ParquetReadOptions(coerce_int96_timestamp_unit="us"))
    fragments = [
        file_format.make_fragment(
            f"{store.root}/{file.key}", filesystem=store.filesystem, partition_expression=_partition(file, schema)
        )
        for file in found.files
        if file.rows != 0
    ]
    return ds.FileSystemDataset(fragments, schema, file_format, filesystem=store.filesystem)


def _partition(file: TableFile, schema: pa.Schema) -> ds.Expression:
    """The condition that each row in ``file`` satisfies."""
    every = ds.scalar(value=True)
    for name, text in file.partition.items():
        column = ds.field(name)
        value = None if text is None else _value(text, schema.field(name).type)
        every = every & (column.is_null() if value is None else column == pa.scalar(value, schema.field(name).type))
    return every


def _value(text: str, kind: pa.DataType) -> str | date:
    return date.fromisoformat(text) if pa.types.is_date(kind) else text


def _arrow_type(kind: Any, lake: Lake, table: Table) -> pa.DataType:
    """The type of a column as Delta's schema gives it: a name, or an object for nested ones."""
    if isinstance(kind, str):
        if decimal := _DECIMAL.fullmatch(kind):
            return pa.decimal128(int(decimal[1]), int(decimal[2]))
        if kind in _SCALARS:
            return _SCALARS[kind]
    elif kind["type"] == "array":
        return pa.list_(pa.field("element", _arrow_type(kind["elementType"], lake, table)))
    elif kind["type"] == "map":
        return pa.map_(_arrow_type(kind["keyType"], lake, table), _arrow_type(kind["valueType"], lake, table))
    elif kind["type"] == "struct":
        return pa.struct([pa.field(one["name"], _arrow_type(one["type"], lake, table)) for one in kind["fields"]])
    raise LakeError(f"{lake.shown(table.path)} has a column of type {kind}, which is not read here; use Spark")
