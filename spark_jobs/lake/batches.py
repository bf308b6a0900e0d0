"""The batches of each table that a query writes, in one small file, so that nobody reads a log commit by commit.

::

    silver/events/_delta_log    0 1 2 3 …                        9000 │ 9001 … 9007     weeks of commits, then cleaned
    _batches/silver.json        sums of old batches … each of the last 64 │ only these are read

The file is a copy of the log up to a version. So an old one is as correct as a new one, any process may write it at any
time, and a lost one is made again from the log. Writers renew it every few commits, and so does a reader that had to
read more than a few. An older lake has no such file: there the log is read once, as far back as the reader needs.

Old batches are summed up with their neighbours: see :mod:`spark_jobs.lake.batch`. Their sum claims
more than each of them, never less.
"""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from typing import Final

from pydantic import ValidationError

from spark_jobs.config.durations import time_of_us
from spark_jobs.contract.tables import Table
from spark_jobs.errors import LakeError
from spark_jobs.lake.batch import EVER_US, Batch, Batches, batch_in, summed, thinned
from spark_jobs.lake.layout import Lake, commit_key
from spark_jobs.lake.notes import CommitNote, info_in
from spark_jobs.places import batches_key

_FEW: Final = 16
"""The most commits that may lie between the file and the end of the log."""
_AT_ONCE: Final = 8
"""Commits that are read at the same time."""
_UNWRITTEN: Counter[str] = Counter()
"""By table, how many commits this process has made since it renewed the file."""


def note_in_table(lake: Lake, table: Table, name: str, *, until: int | None = None) -> CommitNote | None:
    """The last note in ``table`` up to version ``until`` of ``name``, a query or another writer with progress."""

    def has_it(found: Batches) -> bool:
        return found.note_of(name, until=until) is not None

    return read_batches(lake, table, has_it).note_of(name, until=until)


def last_arrival(lake: Lake, table: Table, version: int) -> datetime | None:
    """The last ``ingest_time`` (UTC) of rows in ``table`` up to ``version``; None without rows, or if nobody knows."""

    def last_us(found: Batches) -> int:
        return max((batch.last_us or 0 for batch in found.of(0, version)), default=0)

    us = last_us(read_batches(lake, table, lambda found: last_us(found) > 0))
    return time_of_us(us) if 0 < us < EVER_US else None


def has_rows(lake: Lake, table: Table) -> bool:
    """Whether ``table`` holds rows besides heartbeats; what its log no longer has may have brought some."""

    def has_any(found: Batches) -> bool:
        return any(batch.first_us is not None for batch in found.batches)

    found = read_batches(lake, table, has_any)
    return has_any(found) or found.begins > 0


def arrivals(lake: Lake, table: Table, first: int, last: int) -> tuple[int, int] | None:
    """The first and the last ``ingest_time`` of rows that versions ``first`` to ``last`` of ``table`` added.

    In microseconds since 1970; None: they added no rows. Rows of other versions may lie between, where clocks of
    several machines have written or old batches were summed up.
    """
    return read_batches(lake, table, lambda found: found.begins <= first).arrivals(first, last)


def keep_up(lake: Lake, table: Table) -> None:
    """To be called after each commit of a query: renews the file every few commits."""
    _UNWRITTEN[lake.table(table)] += 1
    if _UNWRITTEN[lake.table(table)] >= _FEW:
        _UNWRITTEN[lake.table(table)] = 0
        with suppress(LakeError, OSError):  # the rows are written, and a reader can renew the file
            save(lake, table)


def save(lake: Lake, table: Table, ends: Collection[int] = ()) -> None:
    """Writes the file as of now; to be called before anything that lets Delta clean the log.

    Args:
        lake: the lake.
        table: whose file.
        ends: the last versions that its readers have read: where they stopped stays exact, however old it gets.
    """
    first = min(ends, default=None)
    found = read_batches(lake, table, lambda found: _has_note(found) and (first is None or found.begins <= first))
    for end in ends:
        found = _with_end(lake, table, found, end)
    _write(lake, table, found)


def _with_end(lake: Lake, table: Table, found: Batches, end: int) -> Batches:
    """``found`` with a batch that ends where a reader has stopped, if the log still shows that."""
    at = max((place for place, batch in enumerate(found.batches) if batch.first_version <= end), default=None)
    if at is None:
        return found
    batch, parts = found.batches[at], list[Batch]()
    if batch.version > end:
        commits = _commits(lake, table, range(batch.first_version, batch.version + 1))
        if None in commits:
            return found
        single = _batches(table, commits, batch.first_version)
        parts = [
            summed(some) for is_later in (False, True) if (some := [b for b in single if (b.version > end) is is_later])
        ]
    else:
        parts = [batch]
    parts[0] = parts[0].model_copy(update={"is_end": True})
    return found.model_copy(update={"batches": (*found.batches[:at], *parts, *found.batches[at + 1 :])})


def _has_note(found: Batches) -> bool:
    return any(batch.note for batch in found.batches)


def read_batches(lake: Lake, table: Table, is_enough: Callable[[Batches], bool] = _has_note) -> Batches:
    """The batches of ``table`` back to where they are enough, or to the beginning of its log."""
    newest = lake.newest_commit(table.path)
    if newest is None:
        return Batches()
    kept = _kept(lake, table, newest)
    found = kept and _extended(lake, table, kept, newest)
    found = found or Batches(version=newest, begins=newest + 1, stamp=_stamp(_commits(lake, table, [newest])[0]))
    count = 4
    while found.begins > 0 and not is_enough(found):
        commits = _commits(lake, table, range(found.begins - 1, max(found.begins - 1 - count, -1), -1))
        there = commits[: commits.index(None)] if None in commits else commits
        earlier = _batches(table, there[::-1], found.begins - len(there))
        begins = found.begins - len(there)
        found = found.model_copy(update={"begins": begins, "batches": (*earlier, *found.batches)})
        if len(there) < len(commits):
            break  # the log was cleaned up to here
        count = min(2 * count, 1024)
    since = kept.version if kept else found.begins
    if found.version - since > _FEW or (kept and found.begins < kept.begins):
        with suppress(LakeError, OSError):  # without permission to write, the next read reads all of it again
            _write(lake, table, found)
    return found


def _kept(lake: Lake, table: Table, newest: int) -> Batches | None:
    try:
        kept = Batches.model_validate_json(lake.files.read(batches_key(table.name)) or b"")
    except ValidationError:
        return None
    if kept.version > newest:
        return None
    commit = lake.files.read(commit_key(table, kept.version))
    return kept if commit is None or _stamp(commit) == kept.stamp else None


def _extended(lake: Lake, table: Table, kept: Batches, newest: int) -> Batches | None:
    """``kept`` with the batches since; None: some of their commits are gone."""
    commits = _commits(lake, table, range(kept.version + 1, newest + 1))
    if None in commits:
        return None
    stamp = _stamp(commits[-1]) if commits else kept.stamp
    newer = _batches(table, commits, kept.version + 1)
    return kept.model_copy(update={"version": newest, "stamp": stamp, "batches": (*kept.batches, *newer)})


def _commits(lake: Lake, table: Table, versions: Sequence[int]) -> list[bytes | None]:
    keys = [commit_key(table, version) for version in versions]
    if len(keys) <= _AT_ONCE:
        return [lake.files.read(key) for key in keys]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(lake.files.read, keys))


def _batches(table: Table, commits: Sequence[bytes | None], first: int) -> list[Batch]:
    found = [batch_in(commit or b"", table, version) for version, commit in enumerate(commits, start=first)]
    return [batch for batch in found if batch.note or batch.first_us is not None]


def _stamp(commit: bytes | None) -> str:
    info = info_in(commit or b"")
    return str(info.get("txnId") or info.get("timestamp") or "")


def _write(lake: Lake, table: Table, found: Batches) -> None:
    kept = found.model_copy(update={"batches": thinned(found.batches)})
    lake.files.write(batches_key(table.name), kept.model_dump_json(exclude_defaults=True).encode())
