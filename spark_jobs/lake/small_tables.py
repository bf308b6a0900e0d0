"""Reads a small Delta table without Spark: its files as a whole."""

from typing import Any

from spark_jobs.contracts.errors import LakeError
from spark_jobs.contracts.tables import Table
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.table_files import live_files, rows_in


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
            raise LakeError(f"{lake.place(file.key)} is missing; was it vacuumed while the table was read?")
        rows += rows_in(data)
    return [{column.name: row.get(column.name) for column in table.columns} for row in rows]
