"""Writes the Delta tables of the lake, each batch exactly once."""

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from delta.exceptions import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    MetadataChangedException,
)
from pyspark.sql import DataFrame, DataFrameWriter, SparkSession
from pyspark.sql import functions as F

from spark_jobs.contract.tables import Table
from spark_jobs.errors import LakeError
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.notes import CommitNote
from spark_jobs.spark.transaction import append_once

T = TypeVar("T")
_TRIES = 5
_IN_BETWEEN = (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    MetadataChangedException,
)
"""With none of them the change was made."""
_PROPERTIES = {
    # Validation reads the changes since the last validated version; for appends the change feed costs nothing.
    "delta.enableChangeDataFeed": "true",
}


def despite_rewrites(change: Callable[[], T]) -> T:
    """Makes a ``change`` to a table; again if a repair or a compaction has come in between.

    These are single commits, so a few tries are enough. The last one raises what it finds.
    """
    for _ in range(_TRIES - 1):
        with suppress(*_IN_BETWEEN):
            return change()
    return change()


def create_table(spark: SparkSession, lake: Lake, table: Table) -> None:
    """Creates ``table`` in ``lake`` if it does not exist."""
    if not lake.has(table):
        nothing = spark.range(0).select(*[F.lit(None).cast(c.sql_type).alias(c.name) for c in table.columns])
        _writer(_plain(nothing, table), table).save(lake.table(table))


def add_columns(lake: Lake, table: Table, rows: DataFrame) -> None:
    """Adds to ``table``, if it exists, the columns that it lacks of those that the contract or ``rows`` have.

    Readers that run meanwhile end, because Delta streams with one schema; they are restarted.

    Raises:
        LakeError: the table has a column of that name with another type.
    """
    if not lake.has(table):
        return
    spark, place = rows.sparkSession, lake.table(table)
    there = {field.name: field.dataType for field in spark.read.format("delta").load(place).schema}
    wanted = {field.name: field.dataType for field in rows.select(*table.kept(rows.columns)).schema}
    for name, kind in wanted.items():
        if there.get(name, kind) != kind:
            raise LakeError(
                f"{table.path} has a column {name} of type {there[name].simpleString()}, and the settings keep it as "
                f"{kind.simpleString()}: a column never changes its type; keep it under another name"
            )
    types = {column.name: column.sql_type for column in table.columns} | {
        name: kind.simpleString() for name, kind in wanted.items()
    }
    if missing := [f"`{name}` {sql_type}" for name, sql_type in types.items() if name not in there]:
        spark.sql(f"ALTER TABLE delta.`{place}` ADD COLUMNS ({', '.join(missing)})")


def append_rows(rows: DataFrame, lake: Lake, table: Table, note: CommitNote) -> None:
    """Appends ``rows`` to ``table``, unless the writer of ``note`` has already committed its batch or a later one.

    Creates the table if it does not exist. The commit carries ``note`` as its user metadata.
    """
    plain = _plain(rows, table)
    append_once(plain, _writer(plain, table), lake, table, note)


def replace_rows(rows: DataFrame, where: str, lake: Lake, table: Table, note: CommitNote) -> None:
    """Replaces the rows of ``table`` that ``where`` holds for by ``rows``, in one commit that carries ``note``.

    Args:
        rows: with the columns of the table; ``where`` holds for all of them.
        where: condition on the table's columns, in SQL.
        lake: where the table lies.
        table: which; created if it does not exist.
        note: goes into the commit as its user metadata.
    """
    create_table(rows.sparkSession, lake, table)
    writer = _plain(rows, table).write.format("delta").mode("overwrite")
    replacing = writer.option("replaceWhere", where).option("userMetadata", note.as_metadata())
    despite_rewrites(lambda: replacing.save(lake.table(table)))


def replace_all(rows: DataFrame, lake: Lake, table: Table, note: CommitNote) -> None:
    """Replaces all rows of ``table`` by ``rows``, in one commit that carries ``note``; creates it if need be.

    A table of an earlier version gets the columns that it lacks.
    """
    writer = _writer(_plain(rows, table), table).mode("overwrite").option("mergeSchema", "true")
    writer.option("userMetadata", note.as_metadata()).save(lake.table(table))


def _plain(rows: DataFrame, table: Table) -> DataFrame:
    # Spark marks the event-time column; the mark would go into the table and give its readers a watermark. It is
    # removed only where there is one: for each such column PySpark makes some twenty calls to Java, in every batch.
    marked = {field.name for field in rows.schema if field.metadata}
    names = (*table.column_names, *table.kept(rows.columns))
    return rows.select(*[F.col(name).alias(name, metadata={}) if name in marked else name for name in names])


def _writer(plain: DataFrame, table: Table) -> DataFrameWriter:
    properties = {**_PROPERTIES, "delta.dataSkippingStatsColumns": ",".join(table.stats_columns)}
    appending = plain.write.format("delta").mode("append")
    return appending.partitionBy(*table.partition_by).options(**properties)
