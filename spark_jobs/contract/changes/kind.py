"""The kinds of change, in one list, which the check and the docs use.

The verdicts are such that what is safe from A to B and from B to C is safe from A to C.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from spark_jobs.contract.compatibility import Compatibility


class Whom(StrEnum):
    """Who is concerned by a change."""

    PRODUCERS = "producers"
    """Those who send records."""
    CONSUMERS = "consumers"
    """Those who read tables."""
    BOTH = "both"


@dataclass(frozen=True)
class ChangeKind:
    """A kind of change."""

    group: str
    """The part of the contract that it is about."""
    what: str
    """The change, as a sentence without its full stop."""
    verdict: Compatibility
    whom: Whom
    why: str


KINDS: list[ChangeKind] = []
"""All of them, in the order of the docs."""


def group(name: str) -> Callable[[str, Compatibility, Whom, str], ChangeKind]:
    """Returns what makes a kind of the group ``name`` and adds it to :data:`KINDS`."""

    def declare(what: str, verdict: Compatibility, whom: Whom, why: str) -> ChangeKind:
        kind = ChangeKind(name, what, verdict, whom, why)
        KINDS.append(kind)
        return kind

    return declare
