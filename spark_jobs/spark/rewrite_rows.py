"""Changes single rows of a Delta table that others append to, in one commit, and without stopping them.

A ``MERGE`` fails if others append to a partition that it has read, and queries append every few seconds. Here the files
that hold the rows are rewritten, and the commit replaces these files and nothing else. So it conflicts only with
whoever rewrites the same files.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.contract.tables import Table
from spark_jobs.errors import LakeError
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.notes import CommitNote
from spark_jobs.spark.delta_internals import Transaction, has_internals

_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
_FILE = "adloom_file"


class RowsChangedError(Exception):
    """A row is not there as it was expected: somebody has changed the table meanwhile."""


@dataclass(frozen=True)
class Rewrite:
    """The rows that a rewrite takes from a table and adds to it.

    Attributes:
        deletes: rows with the columns of the table, as they are there; equal rows as often as they are to be deleted.
        inserts: rows with the columns of the table.
        near: which rows of the table can be among ``deletes``, by columns that let Delta skip files.
    """

    deletes: DataFrame
    inserts: DataFrame
    near: Column


def rewrite_rows(lake: Lake, table: Table, change: Rewrite, note: CommitNote) -> int:
    """Changes rows of ``table``, in one commit that carries ``note``.

    Args:
        lake: where the table lies.
        table: which; it exists.
        change: the rows.
        note: who writes, and the number of the change. The caller has looked whether it is there already.

    Returns:
        The version of the commit.

    Raises:
        RowsChangedError: a row that is to be deleted is not there. Nothing was changed.
        LakeError: this Delta lacks what it takes.
        ConcurrentDeleteDeleteException: others have rewritten a file meanwhile. Nothing was changed.
    """
    spark = change.inserts.sparkSession
    if not has_internals(spark):
        raise LakeError(
            f"{table.path} of {lake.root} cannot be changed while queries append to it: that needs parts of Delta that "
            "this version does not have; adloom is tested with delta-spark 4.4"
        )
    transaction = Transaction(spark, lake.table(table), writer=note.writer)
    there = spark.read.format("delta").option("versionAsOf", transaction.version).load(lake.table(table))
    columns = change.inserts.columns
    files = _files_of(there.where(change.near), change.deletes, columns)
    # All rows of the files, not only those that are near.
    whole = transaction.read(files).select(*columns)
    _check(whole, change.deletes, lake, table)
    rows = whole.exceptAll(change.deletes.select(*columns)).unionByName(change.inserts)
    spark.conf.set(_METADATA, note.as_metadata())
    try:
        return transaction.replace(files, rows, batch=note.batch)
    finally:
        spark.conf.unset(_METADATA)


def _files_of(rows: DataFrame, deletes: DataFrame, columns: Sequence[str]) -> list[str]:
    """The names of the files of the table that hold ``deletes``."""
    row = F.xxhash64(*columns)
    named = rows.select(row.alias("hash"), _file_name().alias(_FILE))
    wanted = F.broadcast(deletes.select(row.alias("hash")).distinct())
    found = named.join(wanted, on="hash", how="left_semi").select(_FILE).distinct()
    return sorted(one[_FILE] for one in found.collect())


def _file_name() -> Column:
    """The name of the file that a row lies in, without its folder."""
    return F.element_at(F.split("_metadata.file_path", "/"), -1)


def _check(rows: DataFrame, deletes: DataFrame, lake: Lake, table: Table) -> None:
    missing = deletes.exceptAll(rows.select(*deletes.columns)).count()
    if missing:
        raise RowsChangedError(
            f"{missing} rows of {table.path} in {lake.root} are not as they were when they were to be changed"
        )
