"""Which rows of a table to validate: the whole table, or those added since the last validated version."""

import json
from dataclasses import dataclass
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.contracts.errors import LakeError
from spark_jobs.contracts.lake import Lake
from spark_jobs.contracts.tables import Table

_CHANGES_THAT_ADD = ("insert", "update_postimage")


@dataclass(frozen=True)
class VersionRange:
    """Versions of a Delta table, both ends included.

    Attributes:
        first: The first version to validate; 0 for the whole table.
        last: The table's version when the validation started.
        whole: Whether to validate all rows of version ``last``.
        note: Why this range was chosen, if that is not obvious.
    """

    first: int
    last: int
    whole: bool
    note: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether the table has no version after the last validated one."""
        return self.first > self.last

    def __str__(self) -> str:
        """The range as shown in the report."""
        if self.is_empty:
            return f"nothing after version {self.last}"
        return f"whole table at version {self.last}" if self.whole else f"versions {self.first} to {self.last}"


@dataclass(frozen=True)
class Rows:
    """Rows to validate.

    Attributes:
        range: The versions they come from.
        new: The rows to validate.
        table: The whole table at the range's last version; None if ``new`` is the whole table.
        is_empty: Whether the range added no row, as after OPTIMIZE; always false for a whole table.
    """

    range: VersionRange
    new: DataFrame
    table: DataFrame | None
    is_empty: bool = False


def current_version(lake: Lake, table: Table) -> int:
    """The latest version of ``table``.

    Raises:
        LakeError: its log holds no commit.
    """
    version = lake.newest_commit(table.path)
    if version is None:
        raise LakeError(f"table {table.name} at {lake.table(table)} has no commit in its log; is the copy complete?")
    return version


def range_to_validate(lake: Lake, table: Table, validated: int | None, *, whole: bool) -> VersionRange:
    """The versions to validate, given ``validated``, the last version that passed (None: none has)."""
    last = current_version(lake, table)
    if whole:
        return VersionRange(0, last, whole=True)
    if validated is None:
        return VersionRange(0, last, whole=True, note="no version has passed yet")
    if validated > last:
        note = f"version {validated} was validated but the table is at {last}: it was recreated"
        return VersionRange(0, last, whole=True, note=note)
    return VersionRange(validated + 1, last, whole=False)


def read_rows(spark: SparkSession, lake: Lake, table: Table, versions: VersionRange) -> Rows:
    """The rows of ``versions``; the whole table, with a note, if change data is missing from the first of them."""
    everything = spark.read.format("delta").option("versionAsOf", versions.last).load(lake.table(table))
    if versions.whole:
        return Rows(versions, everything, None)
    changes = (
        spark.read.format("delta")
        .option("readChangeFeed", "true")
        .option("startingVersion", versions.first)
        .option("endingVersion", versions.last)
    )
    try:
        feed = changes.load(lake.table(table))
        new = feed.where(F.col("_change_type").isin(*_CHANGES_THAT_ADD)).select(*everything.columns)
        # Delta looks up the change data when it plans a job, not when it loads.
        nothing_new = new.isEmpty()
    except PySparkException as error:
        if error.getCondition() != "DELTA_MISSING_CHANGE_DATA":
            raise
        note = f"no change data feed from version {versions.first} on, so the whole table was read"
        return Rows(VersionRange(0, versions.last, whole=True, note=note), everything, None)
    return Rows(versions, new, everything, is_empty=nothing_new)


def read_state(lake: Lake, key: str) -> dict[str, Any]:
    """The JSON object in the file ``key``; empty if there is no such file.

    Raises:
        LakeError: the file is damaged.
    """
    text = lake.files.read(key)
    if text is None:
        return {}
    try:
        value = json.loads(text)
    except ValueError as error:
        raise LakeError(f"{lake.place(key)} is not JSON ({error}); delete it and run the validation again") from error
    if not isinstance(value, dict):
        raise LakeError(f"{lake.place(key)} holds no JSON object; delete it and run the validation again")
    return value
