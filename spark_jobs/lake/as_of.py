"""The version of a table at a given time, from its log alone."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from typing import Final

from spark_jobs.contract.tables import Table
from spark_jobs.errors import LakeError
from spark_jobs.lake.layout import Lake, commit_key
from spark_jobs.lake.notes import committed_at

_CLOCKS_DIFFER_BY: Final = timedelta(minutes=10)


@dataclass(frozen=True)
class AsOf:
    """A state of the tables: the newest versions, or those at ``time``; ``versions`` overrides some, by name.

    ``version`` is for a single table, whose name is left out.
    """

    time: datetime | None = None
    version: int | None = None
    versions: Mapping[str, int] = field(default_factory=dict)


def version_as_of(lake: Lake, table: Table, as_of: AsOf) -> int | None:
    """The version of ``table`` at ``as_of``; None if there is no such table.

    Raises:
        LakeError: the table has no such version, or had none at that time.
    """
    newest = lake.newest_commit(table.path)
    if newest is None:
        return None
    wanted = as_of.versions.get(table.name, as_of.version)
    if wanted is not None:
        if not 0 <= wanted <= newest:
            raise LakeError(f"{table.name} has no version {wanted}; it has versions up to {newest}")
        return wanted
    if as_of.time is None:
        return newest
    found = version_at(lake, table, as_of.time)
    if found is None:
        first = min(lake.commits(table.path))
        made = committed_at(lake.files.read(commit_key(table, first)) or b"")
        since = f" of {made.isoformat(timespec='milliseconds')}" if made else ""
        raise LakeError(
            f"{table.name} had no version at {as_of.time.isoformat()} that is still in its log; the first is version "
            f"{first}{since}"
        )
    return found


def version_at(lake: Lake, table: Table, time: datetime) -> int | None:
    """The last version of ``table`` whose time is not after ``time``; None: it is not in the log, or there was none.

    Several machines commit, and their clocks differ by some minutes at most. The time of a commit is not before that of
    an earlier one, as in Delta: otherwise a version could belong to an earlier time than the one before it.

    A month of commits takes some twenty reads, and those of the last minutes.
    """

    @cache
    def made_at(version: int) -> datetime | None:
        commit = lake.files.read(commit_key(table, version))
        if commit is None:
            return None
        found = committed_at(commit)
        if found is None:
            raise LakeError(f"{lake.shown(commit_key(table, version))} does not say when it was committed")
        return found

    before, after = -1, (lake.newest_commit(table.path) or 0) + 1
    while after - before > 1:
        middle = (before + after) // 2
        made = made_at(middle)
        if made is None or made <= time:
            before = middle
        else:
            after = middle
    for version in range(before, -1, -1):
        made = made_at(version)
        if made is None or made <= time - _CLOCKS_DIFFER_BY:
            break
        if made > time:
            after = version
    return after - 1 if after > 0 and made_at(after - 1) else None
