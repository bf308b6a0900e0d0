"""Table maintenance: compacts small files and removes files that no reader needs."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from spark_jobs.config.durations import format_duration
from spark_jobs.contract.tables import CREDIT_TABLES, DAYS, MARKS, REPAIR_TABLES, Table
from spark_jobs.credit.plan import CREDIT_PLANS
from spark_jobs.errors import LakeInUseError
from spark_jobs.lake.as_of import version_at
from spark_jobs.lake.batches import save
from spark_jobs.lake.layout import commit_key
from spark_jobs.lake.notes import adds_rows, info_in, version_reached
from spark_jobs.places import CREDIT, DAYS_WRITER, MAINTENANCE, MARKS_WRITER, REPAIR
from spark_jobs.queries.jobs import OPTIONAL_JOBS
from spark_jobs.queries.notes import last_note
from spark_jobs.queries.places import checkpoint_versions
from spark_jobs.queries.query import Query
from spark_jobs.queries.registry import QUERIES, readers_of
from spark_jobs.restatements.plans import GOLD_PLANS, Plans
from spark_jobs.spark.conf import table_properties
from spark_jobs.spark.open_lake import OpenLake
from spark_jobs.spark.session import using
from spark_jobs.spark.write_delta import despite_rewrites

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
    """Maintains ``tables``, one after the other, while jobs write and read them.

    Compacting changes no row and makes no reader read anything again; what a job appends meanwhile does not disturb it.
    Tables that commands rewrite are maintained under the lock of these commands. A file that was replaced is removed
    when it has been out of use for ``tables.file_retention`` and every query that reads the table has read past that
    point. With the tables of repairs and of credit, old plans of theirs are removed, and the rows of those that have
    been out of use for as long.

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
                    _PLANS[writer].remove_old(lake, datetime.now(UTC) - lake.settings.tables.file_retention)
                yield _care(lake, table, remove=remove)
        except LakeInUseError as error:
            yield Care(table.name, skipped=str(error))


def _writer(table: Table) -> str:
    """The lock to hold; appends of others to ``restatements`` do not disturb a compaction."""
    own = {MARKS: MARKS_WRITER, DAYS: DAYS_WRITER}
    own |= dict.fromkeys(REPAIR_TABLES, REPAIR) | dict.fromkeys(CREDIT_TABLES, CREDIT)
    return own.get(table, MAINTENANCE)


def _care(lake: OpenLake, table: Table, *, remove: bool) -> Care:
    if table in {MARKS, *(query.writes for query in QUERIES)}:
        reached = [_reached(lake, query) for query in readers_of(table)]
        save(lake, table, [version for version in reached if version >= 0])
    _set_properties(lake, table)
    joined, made = _compact(lake, table)
    if not remove:
        return Care(table.name, joined, made)
    if waiting := _waiting_reader(lake, table, datetime.now(UTC)):
        return Care(table.name, joined, made, not_removed=waiting)
    return Care(table.name, joined, made, *_vacuum(lake, table))


def _set_properties(lake: OpenLake, table: Table) -> None:
    name, wanted = _name(lake, table), table_properties(lake.settings.tables)
    (found,) = lake.spark.sql(f"DESCRIBE DETAIL {name}").select("properties").collect()
    changed = {key: value for key, value in wanted.items() if found.properties.get(key) != value}
    if changed:
        pairs = ", ".join(f"'{key}' = '{value}'" for key, value in changed.items())
        lake.spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ({pairs})")


def _name(lake: OpenLake, table: Table) -> str:
    return f"delta.`{lake.table(table)}`"


def _compact(lake: OpenLake, table: Table) -> tuple[int, int]:
    """Compacts the small files of ``table``; returns how many there were, and how many replace them."""

    def compact() -> tuple[int, int]:
        (done,) = lake.spark.sql(f"OPTIMIZE {_name(lake, table)}").select("metrics").collect()
        return int(done.metrics.numFilesRemoved), int(done.metrics.numFilesAdded)

    return despite_rewrites(compact)


def _waiting_reader(lake: OpenLake, table: Table, now: datetime) -> str:
    """Why a query that reads ``table`` still needs files that are older than the retention; empty if none does."""
    readers = [query for query in readers_of(table) if _is_waited_for(lake, query)]
    if not readers:
        return ""
    needed = _last_rows_before(lake, table, now - lake.settings.tables.file_retention)
    for query in readers:
        reached = _reached(lake, query)
        if reached < needed:
            return (
                f"query {query.name} has read it up to version {reached} only, and version {needed} is older than "
                f"tables.file_retention {format_duration(lake.settings.tables.file_retention)}: run job "
                f"{query.job} first"
            )
    return ""


def _reached(lake: OpenLake, query: Query) -> int:
    """The last version that ``query`` has read to its last row; -1: none."""
    note = last_note(lake, query.name)
    return min(map(version_reached, note.reached), default=-1) if note else -1


def _last_rows_before(lake: OpenLake, table: Table, time: datetime) -> int:
    """The last version of ``table`` up to ``time`` that added rows; -1: none did, or the log has lost it."""
    version = version_at(lake, table, time)
    while version is not None and (commit := lake.files.read(commit_key(table, version))):
        if adds_rows(commit):  # compaction and the like add nothing to read
            return version
        version -= 1
    return -1


def _is_waited_for(lake: OpenLake, query: Query) -> bool:
    """Whether ``query`` may still need files: it has begun, or its job is one that every lake has."""
    return query.job not in OPTIONAL_JOBS or bool(checkpoint_versions(lake, query.name))


def _vacuum(lake: OpenLake, table: Table) -> tuple[int, int]:
    """Removes the files of ``table`` that are out of use; returns how many, and their bytes."""
    before = lake.newest_commit(table.path) or 0
    with using(lake.spark, {"spark.databricks.delta.vacuum.logging.enabled": "true"}):
        lake.spark.sql(f"VACUUM {_name(lake, table)}").collect()
    after = lake.newest_commit(table.path) or 0
    said = [info_in(lake.files.read(commit_key(table, version)) or b"") for version in range(before + 1, after + 1)]
    found = {info["operation"]: info.get("operationMetrics", {}) for info in said if "operation" in info}
    files = found.get("VACUUM END", {}).get("numDeletedFiles", 0)
    return int(files), int(found.get("VACUUM START", {}).get("sizeOfDataToDelete", 0))
