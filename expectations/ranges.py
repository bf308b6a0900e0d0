"""Which rows of a table to validate: the whole table, or those added since the last validated version."""

import json
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.contract.tables import Table
from spark_jobs.errors import LakeError
from spark_jobs.lake.layout import Lake
from spark_jobs.spark.failures import reason
from spark_jobs.spark.open_lake import OpenLake, declared

_CHANGES_THAT_ADD = ("insert", "update_postimage")
_UNSEEN = "rows that were added since the last validated version and replaced or deleted again were not checked"


@dataclass(frozen=True)
class VersionRange:
    """Versions of a Delta table, both ends included.

    Attributes:
        first: The first version whose rows are included; 0 for the whole table.
        last: The table's version when the validation began.
        whole: Whether all rows of version ``last`` are included.
        note: Why the range differs from what one would expect, and what it leaves out; empty if it does not.
    """

    first: int
    last: int
    whole: bool
    note: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether there is no version after the last validated one."""
        return self.first > self.last

    def __str__(self) -> str:
        """The range as the report shows it."""
        if self.is_empty:
            return f"nothing after version {self.last}"
        return f"whole table at version {self.last}" if self.whole else f"versions {self.first} to {self.last}"


@dataclass(frozen=True)
class Rows:
    """Rows to validate.

    Attributes:
        range: The versions they come from.
        new: The rows themselves.
        table: The whole table at the range's last version; None when ``new`` is all of it.
        is_empty: Whether the range added no row, as after OPTIMIZE; False for a whole table.
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
    """The versions to validate if ``validated`` was the last one without critical failures (None: none)."""
    last = current_version(lake, table)
    if whole:
        return VersionRange(0, last, whole=True)
    if validated is None:
        return VersionRange(0, last, whole=True, note="no version has passed yet")
    if validated > last:
        note = f"version {validated} was validated but the table is at {last}: it was recreated"
        return VersionRange(0, last, whole=True, note=note)
    return VersionRange(validated + 1, last, whole=False)


def read_rows(lake: OpenLake, table: Table, versions: VersionRange) -> Rows:
    """The rows of ``versions``; the whole table, with a note, where these can no longer be read one by one.

    That happens when the table kept no change data, or when the versions are so old that log cleanup or VACUUM has
    removed part of them: as long as a critical rule is broken, the range starts at the same version and grows.

    The rows have all columns of the contract, null where the table lacks one.
    """
    everything = lake.read(table, version=versions.last)
    if versions.whole:
        return Rows(versions, everything, None)
    try:
        new = declared(_added_rows(lake, table, versions), table).select(*everything.columns)
        # Opens every file of the range. Delta looks for them only when a job runs, and isEmpty stops at the first one.
        is_empty = new.count() == 0
    except (PySparkException, Py4JJavaError) as error:
        note = f"{_why(versions, str(error))}, so the whole table was read; {_UNSEEN}"
        return Rows(VersionRange(0, versions.last, whole=True, note=note), everything, None)
    return Rows(versions, new, everything, is_empty=is_empty)


def _added_rows(lake: OpenLake, table: Table, versions: VersionRange) -> DataFrame:
    changes = (
        lake.spark.read.format("delta")
        .option("readChangeFeed", "true")
        .option("startingVersion", versions.first)
        .option("endingVersion", versions.last)
    )
    return changes.load(lake.table(table)).where(F.col("_change_type").isin(*_CHANGES_THAT_ADD))


def _why(versions: VersionRange, error: str) -> str:
    if "DELTA_MISSING_CHANGE_DATA" in error:
        return f"no change data feed from version {versions.first} on"
    return (
        f"the change feed of versions {versions.first} to {versions.last} cannot be read any more, as after VACUUM or "
        f"log cleanup ({reason(error)})"
    )


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
        raise LakeError(f"{lake.shown(key)} is not JSON ({error}); delete it and run the validation again") from error
    if not isinstance(value, dict):
        raise LakeError(f"{lake.shown(key)} holds no JSON object; delete it and run the validation again")
    return value
