"""The version of a table at a given time, from its log alone."""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import accumulate

from spark_jobs.contract.tables import Table
from spark_jobs.errors import LakeError
from spark_jobs.lake.layout import Lake, commit_key
from spark_jobs.lake.notes import committed_at


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
    return newest if as_of.time is None else _version_at(lake, table, as_of.time)


def _version_at(lake: Lake, table: Table, time: datetime) -> int:
    """The last version whose time is not after ``time``.

    Several machines commit, and their clocks differ. So the time of a commit is not before that of an earlier one, as
    in Delta: otherwise a version could belong to an earlier time than the one before it.
    """
    versions = lake.commits(table.path)
    times = list(accumulate((_committed_at(lake, table, version) for version in versions), max))
    before = bisect_right(times, time)
    if not before:
        raise LakeError(
            f"{table.name} had no version at {time.isoformat()} that is still in its log; the first is version "
            f"{versions[0]} of {times[0].isoformat(timespec='milliseconds')}"
        )
    return versions[before - 1]


def _committed_at(lake: Lake, table: Table, version: int) -> datetime:
    found = committed_at(lake.files.read(commit_key(table, version)) or b"")
    if found is None:
        raise LakeError(f"{lake.shown(commit_key(table, version))} does not say when it was committed")
    return found
