"""A change of a contract, and what a comparison finds."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from spark_jobs.contract.changes.kind import ChangeKind
from spark_jobs.contract.compatibility import Compatibility
from spark_jobs.contract.contract import Version


@dataclass(frozen=True)
class Change:
    """A difference between two contracts: what differs, as in ``source.web.when``, and its value before and now."""

    kind: ChangeKind
    what: str
    before: str
    now: str

    @property
    def verdict(self) -> Compatibility:
        """Whether producers and consumers can go on as before."""
        return self.kind.verdict

    @property
    def is_breaking(self) -> bool:
        """Whether somebody must act."""
        return self.verdict is Compatibility.BREAKING

    def as_json(self) -> dict[str, str]:
        """For machines."""
        return {
            "what": self.what,
            "before": self.before,
            "now": self.now,
            "verdict": self.verdict.value,
            "whom": self.kind.whom.value,
            "why": self.kind.why,
        }


Changes = Iterator[Change]


class Level(StrEnum):
    """How well the version fits the changes."""

    OK = "ok"
    WARNING = "warning"
    """Safe changes under the version of before."""
    ERROR = "error"
    """Breaking changes without a new major."""


@dataclass(frozen=True)
class VersionFinding:
    """Whether the version was raised as the changes need it."""

    before: str
    now: str
    level: Level
    why: str


@dataclass(frozen=True)
class Comparison:
    """The changes from one contract to another, breaking ones first, and what they need of the version."""

    changes: tuple[Change, ...]
    version: VersionFinding

    @property
    def breaking(self) -> tuple[Change, ...]:
        """The breaking changes."""
        return tuple(change for change in self.changes if change.is_breaking)

    def as_json(self) -> dict[str, Any]:
        """For machines."""
        version = self.version
        return {
            "changes": [change.as_json() for change in self.changes],
            "version": {
                "before": version.before,
                "now": version.now,
                "level": version.level.value,
                "why": version.why,
            },
        }


def judge_version(before: str, now: str, changes: tuple[Change, ...]) -> VersionFinding:
    """Whether ``now`` is a version that can follow ``before`` with ``changes``."""
    if not changes:
        return VersionFinding(before, now, Level.OK, "the contracts promise the same")
    old, new = Version.parse(before), Version.parse(now)
    if any(change.is_breaking for change in changes):
        if new.major > old.major:
            return VersionFinding(before, now, Level.OK, "breaking changes come with a new major version")
        why = f"a change is breaking: set contract.version to {old.after(is_breaking=True)} or later"
        return VersionFinding(before, now, Level.ERROR, why)
    if new.is_after(old):
        return VersionFinding(before, now, Level.OK, "safe changes come with a new version")
    why = f"there are changes, all of them safe: set contract.version to {old.after(is_breaking=False)} or later"
    return VersionFinding(before, now, Level.WARNING, why)
