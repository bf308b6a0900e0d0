"""Delta tables of the lake, as streams and at rest."""

from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.config.durations import time_of_us
from spark_jobs.contract.tables import Table
from spark_jobs.errors import LakeError
from spark_jobs.lake.layout import Lake

_ALL_FILES = 2**31 - 1


def stream_table(spark: SparkSession, lake: Lake, table: Table) -> DataFrame:
    """Streams ``table`` with the columns that are kept, version by version.

    A batch always takes whole versions. Within a version rows lie in no order of time, so a batch that ended in the
    middle of one would move the watermark past rows that wait in its other files.

    Args:
        spark: the session.
        lake: where the table lies.
        table: which.
    """
    rows = (
        spark.readStream.format("delta")
        # The snapshot that is read otherwise comes in no order of time.
        .option("startingVersion", 0)
        .option("maxFilesPerTrigger", _ALL_FILES)
        .load(lake.table(table))
    )
    return declared(rows, table)


def declared(rows: DataFrame, table: Table) -> DataFrame:
    """``rows`` with the columns of the contract first, null where an older lake lacks one, then those that are kept."""
    there = rows.columns
    columns = [
        F.col(column.name) if column.name in there else F.lit(None).cast(column.sql_type).alias(column.name)
        for column in table.columns
    ]
    return rows.select(*columns, *table.kept(there))


@dataclass(frozen=True)
class Commit:
    """A commit in a table's log. Only the operation ``WRITE`` adds rows."""

    version: int
    operation: str
    committed_at: datetime


def read_history(spark: SparkSession, lake: Lake, table: Table) -> list[Commit]:
    """The commits that the log of ``table`` still holds; their times are with zone (UTC)."""
    history = spark.sql(f"DESCRIBE HISTORY delta.`{lake.table(table)}`")
    found = history.select("version", "operation", F.unix_micros("timestamp").alias("us")).collect()
    return [Commit(one.version, one.operation, time_of_us(one.us)) for one in found]


def newest_event_time(events: DataFrame) -> datetime | None:
    """The largest ``event_time`` of ``events``, with its zone (UTC), to the microsecond; None without events."""
    (newest_us,) = events.agg(F.unix_micros(F.max("event_time"))).first() or (None,)
    return None if newest_us is None else time_of_us(newest_us)


def first_event_time(events: DataFrame) -> datetime | None:
    """The smallest ``event_time`` of ``events``, as :func:`newest_event_time` gives the largest."""
    (first_us,) = events.agg(F.unix_micros(F.min("event_time"))).first() or (None,)
    return None if first_us is None else time_of_us(first_us)


def read_table(spark: SparkSession, lake: Lake, table: Table, *, version: int | None = None) -> DataFrame:
    """The rows of ``table`` as they are now, or as they were in ``version``, with the columns that are kept.

    Raises:
        LakeError: the lake has no such table yet.
    """
    if not lake.has(table):
        raise LakeError(f"lake {lake.root} has no table {table.name} ({table.path}) yet; run `adloom run` on it first")
    reader = spark.read.format("delta")
    if version is not None:
        reader = reader.option("versionAsOf", version)
    return declared(reader.load(lake.table(table)), table)
