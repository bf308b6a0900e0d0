"""Backups: copies of a lake, taken while jobs run, from which a lake can be restored.

A table says by itself how far its writer had read: its commits carry a note (:mod:`spark_jobs.lake.notes`). So
checkpoints are not copied. They are rebuilt from the tables, as a reset does it, and each query continues where its
copied table ends. For that, a table must hold all that the tables made from it have read. So those come first::

    copied     gold/* at 12:00:01    silver at 12:00:07    bronze at 12:00:19
    restored   gold has read silver up to 12:00:00, and the rest of silver is there; bronze likewise; then Kafka

Repairs, credit, days, marks and the ledger are several tables or files each that belong together, so none of them may
be changed meanwhile. :data:`_OWNERS` says which folder each of them keeps next to its tables.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime

from pydantic import BaseModel, ConfigDict, JsonValue

from spark_jobs import __version__
from spark_jobs.config.sections import S3Settings
from spark_jobs.contract.tables import CREDIT_TABLES, DAYS, MARKS, REPAIR_TABLES, Table
from spark_jobs.errors import LakeError
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.lock import hold_job
from spark_jobs.lake.records import find_record, write_record
from spark_jobs.lake.store.files import json_bytes
from spark_jobs.lake.table_files import checkpoints_in, live_files
from spark_jobs.places import (
    BATCHES,
    CHECKPOINTS,
    CONTRACTS,
    CREDIT,
    CREDIT_RUNS,
    DAYS_WRITER,
    INITIAL,
    LEDGER,
    MARKS_WRITER,
    PROGRESS,
    REPAIR,
    REPAIRS,
    REQUEUED,
    SCHEMAS,
    lock_key,
)
from spark_jobs.queries.notes import last_note
from spark_jobs.queries.registry import QUERIES
from spark_jobs.traffic_rules.reached import RULES

MANIFEST = "backup.json"
"""The description of a copy, as JSON: written last, so that a copy without it is not whole."""
_BEGUN = "backup-begun.json"
"""The lake of which it is a copy, as JSON: written first, so that no lake is ever taken for a copy."""
_OWNERS = {
    REPAIR: REPAIRS,
    CREDIT: CREDIT_RUNS,
    MARKS_WRITER: RULES,
    DAYS_WRITER: f"{PROGRESS}/{DAYS_WRITER}",
    LEDGER: f"{PROGRESS}/{LEDGER}",
}
"""By lock, the folder of what is written under it besides tables."""
_FOLDERS = (BATCHES, CONTRACTS, SCHEMAS, INITIAL, *_OWNERS.values())
_FILES = (REQUEUED,)
_IN_LOG = re.compile(r"(\d{20})\.(?:json|crc|checkpoint\.parquet|checkpoint\..+|compacted\.json)")
_OF_CHECKPOINT = re.compile(rf"{CHECKPOINTS}/[^/]+/[^/]+/v\d+\.json")
_AT_ONCE = 8
"""Files that are copied at the same time."""
Report = Callable[[str, int, int], None]
"""Called for each table or ``files`` with how many files are done, and of how many."""


class Backup(BaseModel):
    """The contents of a copy."""

    model_config = ConfigDict(frozen=True)

    adloom: str
    """The version of adloom that took it."""
    taken_at: datetime
    lake: str
    """The root of the lake that was copied."""
    tables: dict[str, int]
    """By name, the version of each table."""
    ingest_reached: list[JsonValue]
    """How far ``ingest`` had read, as Spark writes it: Kafka must still have all later records. Empty: nothing read."""


@dataclass(frozen=True)
class _Copying:
    """Copies files from one lake to another, a few at a time."""

    source: Lake
    target: Lake
    report: Report

    def copy(self, what: str, keys: Iterable[str]) -> None:
        """Copies the files; one that was deleted after it was listed is left out."""
        wanted = list(keys)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for done, _ in enumerate(pool.map(self._copy, wanted), start=1):
                self.report(what, done, len(wanted))

    def _copy(self, key: str) -> None:
        if (data := self.source.files.read(key)) is not None:
            self.target.files.write(key, data)


def back_up(lake: Lake, target: Lake, s3: S3Settings, *, now: datetime, report: Report) -> Backup:
    """Copies ``lake`` to ``target``; files of an earlier copy of it there are not copied again.

    Args:
        lake: jobs may be running on it.
        target: an empty place, or one with an earlier copy of the same lake.
        s3: of the lake's store.
        now: the time (UTC).
        report: called with how far it is.

    Raises:
        LakeError: ``target`` holds something else, or a table cannot be read.
        LakeInUseError: a repair, a replay, credit, a marking, or an update of days or of the ledger is running.
    """
    _check_target(lake, target)
    copying = _Copying(lake, target, report)
    target.files.write(_BEGUN, json_bytes({"lake": lake.shown()}))
    target.files.delete([MANIFEST])
    with ExitStack() as held:
        checks = [held.enter_context(hold_job(lake, name, s3)) for name in _OWNERS]
        copying.copy("files", _small_files(lake))
        versions: dict[str, int] = {}
        for table in _downstream_first():
            version = lake.newest_commit(table.path)
            if version is not None:
                _copy_table(copying, table, version)
                versions[table.name] = version
            for check in checks:
                check()
    note = last_note(target, QUERIES[0].name, until=versions.get(QUERIES[0].writes.name)) if versions else None
    reached = list(note.reached) if note else []
    done = Backup(adloom=__version__, taken_at=now, lake=lake.shown(), tables=versions, ingest_reached=reached)
    write_record(target, MANIFEST, done)
    return done


def read_backup(copy: Lake) -> Backup:
    """The contents of the copy at ``copy``.

    Raises:
        LakeError: it is missing, or not whole.
    """
    found = find_record(copy, MANIFEST, Backup)
    if found is None:
        raise LakeError(
            f"{copy.shown()} is not a complete backup: it has no {MANIFEST}; take it again with `adloom backup`"
        )
    return found


def put_back(copy: Lake, target: Lake, *, report: Report) -> Backup:
    """Copies the backup at ``copy`` to ``target``, which must be empty. Checkpoints are still to be made.

    Raises:
        LakeError: ``copy`` is not a complete backup, or ``target`` is not empty.
    """
    backup, copying = read_backup(copy), _Copying(copy, target, report)
    if not _is_empty(target):
        raise LakeError(f"{target.shown()} is not empty: a lake is restored to a new place, and nothing is replaced")
    copying.copy("files", _small_files(copy))
    for table in _downstream_first():
        if table.name in backup.tables:
            _copy_table(copying, table, backup.tables[table.name])
    return backup


def _is_empty(place: Lake) -> bool:
    # MinIO also lists folders of which only deleted versions are left.
    return next(iter(place.files.walk("")), None) is None


def _check_target(lake: Lake, target: Lake) -> None:
    if target.root == lake.root or target.root.startswith(f"{lake.root}/") or lake.root.startswith(f"{target.root}/"):
        raise LakeError(f"{target.shown()} and {lake.shown()} lie within each other; give another place for the copy")
    begun = target.files.read(_BEGUN)
    if begun is None and not _is_empty(target):
        raise LakeError(f"{target.shown()} is not empty and holds no backup; give an empty place")
    before = json.loads(begun)["lake"] if begun else lake.shown()
    if before != lake.shown():
        raise LakeError(f"{target.shown()} holds a backup of {before}; give another place for {lake.shown()}")


def _downstream_first() -> Iterator[Table]:
    """Each table before those that it is made from."""
    yield from (DAYS, *reversed(CREDIT_TABLES), MARKS, *reversed(REPAIR_TABLES))
    yield from (query.writes for query in reversed(QUERIES))


def _small_files(lake: Lake) -> Iterator[str]:
    locks = {lock_key(name) for name in _OWNERS}
    for folder in _FOLDERS:
        yield from (file.key for file in lake.files.walk(folder) if file.key not in locks)
    yield from _FILES
    # From its manifest a new checkpoint knows the initial state of the first one.
    yield from (file.key for file in lake.files.walk(CHECKPOINTS) if _OF_CHECKPOINT.fullmatch(file.key))


def _copy_table(copying: _Copying, table: Table, version: int) -> None:
    """Copies ``version`` of ``table`` and the log up to it: data first, so that the copy is never ahead of its files.

    Raises:
        LakeError: a file of that version is gone.
    """
    log = f"{table.path}/_delta_log"
    there = {file.key: file.bytes for file in copying.target.files.walk(table.path)}
    found = {file.key: file.bytes for file in copying.source.files.walk(table.path)}
    # The name of a data file is never used again.
    data = [key for key, size in found.items() if not key.startswith(f"{log}/") and there.get(key) != size]
    copying.copy(table.name, data)
    copying.copy(f"{table.name}, log", _log_up_to(log, version, found, there))
    _point_to_checkpoint(copying.target, table)
    copied = {file.key for file in copying.target.files.walk(table.path)}
    missing = [file.key for file in live_files(copying.target, table, version) if file.key not in copied]
    if missing:
        raise LakeError(
            f"{copying.source.shown(missing[0])} is gone, which version {version} of {table.name} needs; was the table "
            "vacuumed meanwhile? Take the backup again"
        )


def _log_up_to(log: str, version: int, found: Mapping[str, int], there: Mapping[str, int]) -> Iterator[str]:
    for key, size in sorted(found.items()):
        name = _IN_LOG.fullmatch(key.removeprefix(f"{log}/"))
        if name and int(name[1]) <= version and there.get(key) != size:
            yield key


def _point_to_checkpoint(target: Lake, table: Table) -> None:
    """Records the last checkpoint of the log; that of the source may not be in the copy."""
    if versions := checkpoints_in(target, table):
        # Delta reads the rest from the checkpoint itself; its size is a hint.
        pointer = json.dumps({"version": versions[-1], "size": 0})
        target.files.write(f"{table.path}/_delta_log/_last_checkpoint", pointer.encode())
