"""Table maintenance: compacts small files and removes files that no reader needs."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import SparkSession

from spark_jobs.config.durations import format_duration
from spark_jobs.contract.tables import CREDIT_TABLES, DAYS, MARKS, REPAIR_TABLES, Table
from spark_jobs.credit.plan import CREDIT_PLANS
from spark_jobs.errors import LakeInUseError
from spark_jobs.lake.batches import save
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.notes import version_reached
from spark_jobs.places import CREDIT, DAYS_WRITER, MARKS_WRITER, REPAIR
from spark_jobs.queries.jobs import OPTIONAL_JOBS
from spark_jobs.queries.notes import last_note
from spark_jobs.queries.places import checkpoint_versions
from spark_jobs.queries.registry import QUERIES, readers_of, writer_of
from spark_jobs.restatements.plans import GOLD_PLANS, Plans
from spark_jobs.spark.conf import table_properties
from spark_jobs.spark.open_lake import OpenLake

_PARQUET = ".parquet"
_PLANS: dict[str, Plans[Any]] = {REPAIR: GOLD_PLANS, CREDIT: CREDIT_PLANS}
"""By lock, the plans that are made under it."""


@dataclass(frozen=True)
class Care:
    """The maintenance done to a table.

    Attributes:
        table: its name.
        files_joined: small files that were compacted.
        files_made: the files that replaced them.
        files_removed: data files that were deleted, or would be.
        bytes_removed: their size.
        skipped: why nothing was done; otherwise empty.
        not_removed: why no file was deleted; otherwise empty.
    """

    table: str
    files_joined: int = 0
    files_made: int = 0
    files_removed: int = 0
    bytes_removed: int = 0
    skipped: str = ""
    not_removed: str = ""


def maintain(lake: OpenLake, tables: Iterable[Table], *, remove: bool) -> Iterator[Care]:
    """Maintains ``tables``, one after the other, each while holding the lock of what writes it.

    Compacting changes no row and makes no reader read anything again. A file that was replaced is removed when it has
    been out of use for ``tables.file_retention`` and every query that reads the table has read past that point.
    With the tables of repairs and of credit, old plans of theirs are removed.

    Args:
        lake: the lake.
        tables: those to maintain; one that does not exist is skipped.
        remove: whether to remove files and plans.

    Yields:
        What was done to each table.
    """
    for table in tables:
        if not lake.has(table):
            continue
        writer = _writer(table)
        try:
            with lake.hold(writer):
                if remove and writer in _PLANS:
                    _PLANS[writer].remove_old(lake)
                yield _care(lake, table, remove=remove)
        except LakeInUseError as error:
            yield Care(table.name, skipped=str(error))


def _writer(table: Table) -> str:
    """The owner of the lock on ``table``; appends of others to ``restatements`` do not disturb a compaction."""
    if table in CREDIT_TABLES:
        return CREDIT
    own = {MARKS: MARKS_WRITER, DAYS: DAYS_WRITER, **dict.fromkeys(REPAIR_TABLES, REPAIR)}
    return own[table] if table in own else writer_of(table).job


def _care(lake: OpenLake, table: Table, *, remove: bool) -> Care:
    name = f"delta.`{lake.table(table)}`"
    if table in {MARKS, *(query.writes for query in QUERIES)}:
        save(lake, table)
    _set_properties(lake.spark, name, table_properties(lake.settings.tables))
    (compacted,) = lake.spark.sql(f"OPTIMIZE {name}").select("metrics").collect()
    joined, made = compacted.metrics.numFilesRemoved, compacted.metrics.numFilesAdded
    if not remove:
        return Care(table.name, joined, made)
    if waiting := _waiting_reader(lake, table, datetime.now(UTC)):
        return Care(table.name, joined, made, not_removed=waiting)
    before = _data_files(lake, table)
    lake.spark.sql(f"VACUUM {name}")
    after = _data_files(lake, table)
    gone = before.keys() - after.keys()
    return Care(table.name, joined, made, len(gone), sum(before[key] for key in gone))


def _set_properties(spark: SparkSession, name: str, wanted: dict[str, str]) -> None:
    (found,) = spark.sql(f"DESCRIBE DETAIL {name}").select("properties").collect()
    changed = {key: value for key, value in wanted.items() if found.properties.get(key) != value}
    if changed:
        pairs = ", ".join(f"'{key}' = '{value}'" for key, value in changed.items())
        spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ({pairs})")


def _waiting_reader(lake: OpenLake, table: Table, now: datetime) -> str:
    """Why a query that reads ``table`` still needs files that are older than the retention; empty if none does."""
    bound = now - lake.settings.tables.file_retention
    history = lake.history(table)
    # Compaction and the like add nothing to read.
    old = [commit.version for commit in history if commit.operation == "WRITE" and commit.committed_at < bound]
    if not old:
        return ""
    for query in readers_of(table):
        if query.job in OPTIONAL_JOBS and not checkpoint_versions(lake, query.name):
            continue
        note = last_note(lake, query.name)
        reached = min((version_reached(offset) for offset in note.reached), default=-1) if note else -1
        if reached < max(old):
            return (
                f"query {query.name} has read it up to version {reached} only, and version {max(old)} is older than "
                f"tables.file_retention {format_duration(lake.settings.tables.file_retention)}: run job "
                f"{query.job} first"
            )
    return ""


def _data_files(lake: Lake, table: Table) -> dict[str, int]:
    log = f"{table.path}/_delta_log/"
    return {
        file.key: file.bytes
        for file in lake.files.walk(table.path)
        if file.name.endswith(_PARQUET) and not file.key.startswith(log)
    }
