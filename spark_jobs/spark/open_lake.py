"""A lake opened with Spark: it is passed to everything that reads or changes its tables."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Self

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import Table
from spark_jobs.errors import LakeError
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.lock import Check, hold_job
from spark_jobs.lake.notes import EVERYTHING
from spark_jobs.spark.aligned import is_aligned, source_of_streams

_ALL_FILES = 2**31 - 1


@dataclass(frozen=True)
class OpenLake(Lake):
    """A lake, the settings it is used with, and the session that reads and writes its tables."""

    settings: Settings
    spark: SparkSession

    @classmethod
    def of(cls, lake: Lake, settings: Settings, spark: SparkSession) -> Self:
        """``lake``, opened."""
        return cls(lake.root, lake.files, settings, spark)

    def read(self, table: Table, *, version: int | None = None) -> DataFrame:
        """The rows of ``table`` as they are now, or as they were in ``version``, with the columns that are kept.

        Raises:
            LakeError: there is no such table yet.
        """
        if not self.has(table):
            raise LakeError(
                f"lake {self.root} has no table {table.name} ({table.path}) yet; run `adloom run` on it first"
            )
        reader = self.spark.read.format("delta")
        if version is not None:
            reader = reader.option("versionAsOf", version)
        return declared(reader.load(self.table(table)), table)

    def read_parquet(self, key: str) -> DataFrame:
        """The rows of the Parquet files in the folder ``key``."""
        return self.spark.read.parquet(self.uri(key))

    def stream(self, table: Table, steps: Sequence[int] = ()) -> DataFrame:
        """Streams ``table`` with the columns that are kept.

        Rows that are there already come as they lie at rest, in the order of time; then the table is read version by
        version. A batch takes whole versions, up to ``job.max_bytes_per_batch``. Within a version rows lie in no order
        of time, so a batch that ended in the middle of one would move the watermark past rows that wait in its other
        files. Of a table that ``ingest`` aligns (:mod:`spark_jobs.spark.aligned`) it takes the rows up to a frontier.

        Args:
            table: which.
            steps: event times (microseconds since 1970), ascending, by which rows that are there already are divided
                into batches; none: they are one batch.
        """
        reader = self.spark.readStream.format(source_of_streams(self.spark))
        if is_aligned(self.spark):
            reader = reader.option("maxBytesPerTrigger", f"{self.settings.job.max_bytes_per_batch}b")
            reader = reader.option("steps", ",".join(map(str, (*steps, EVERYTHING))))
        else:
            # Delta's own source reads rows at rest in no order of time, and ends a full batch in mid-version.
            reader = reader.option("startingVersion", 0).option("maxFilesPerTrigger", _ALL_FILES)
        return declared(reader.load(self.table(table)), table)

    def hold(self, job: str) -> AbstractContextManager[Check]:
        """Holds the lock of ``job`` for the session: see :func:`spark_jobs.lake.lock.hold_job`."""
        return hold_job(self, job, self.settings.s3, spark=self.spark)


def declared(rows: DataFrame, table: Table) -> DataFrame:
    """``rows`` with the columns of the contract first, null where an older lake lacks one, then those that are kept."""
    there = rows.columns
    columns = [
        F.col(column.name) if column.name in there else F.lit(None).cast(column.sql_type).alias(column.name)
        for column in table.columns
    ]
    return rows.select(*columns, *table.kept(there))
