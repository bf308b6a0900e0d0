"""The meaning of a change of a contract for producers and consumers: safe or breaking, and why."""

from spark_jobs.contract.changes.change import Change, Changes, Comparison, Level, VersionFinding, judge_version
from spark_jobs.contract.changes.events import event_changes
from spark_jobs.contract.changes.expectations import expectation_changes
from spark_jobs.contract.changes.input_kinds import NAME, OWNER
from spark_jobs.contract.changes.kind import KINDS, ChangeKind, Whom
from spark_jobs.contract.changes.sources import source_changes
from spark_jobs.contract.changes.tables import table_changes
from spark_jobs.contract.contract import Contract

__all__ = ["KINDS", "Change", "ChangeKind", "Comparison", "Level", "VersionFinding", "Whom", "check"]


def check(old: Contract, new: Contract) -> Comparison:
    """The differences from ``old`` to ``new``, breaking changes first; else in the order of the data flow.

    What is safe from A to B and from B to C is safe from A to C.
    """
    found = tuple(sorted(_changes(old, new), key=lambda change: not change.is_breaking))
    return Comparison(found, judge_version(old.version, new.version, found))


def _changes(old: Contract, new: Contract) -> Changes:
    if old.name != new.name:
        yield Change(NAME, "contract.name", old.name, new.name)
    if old.owner != new.owner:
        yield Change(OWNER, "contract.owner", old.owner, new.owner)
    yield from event_changes(old, new)
    yield from source_changes(old.sources, new.sources)
    yield from table_changes(old.tables, new.tables)
    yield from expectation_changes("lake", old.lake, new.lake)
