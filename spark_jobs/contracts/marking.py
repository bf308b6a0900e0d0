"""Marking events as invalid traffic: where its rules lie in a lake, how far it came, and what it changes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from pydantic import BaseModel, ConfigDict

RULES = "_rules"
"""Folder of the sets of rules that were in use: ``<digest>.json``, and which one is."""
RULES_IN_USE = f"{RULES}/active.json"
"""The set that is in use, as JSON: see :class:`RulesInUse`."""
MARKS_WRITER = "marks"
"""In place of a job's name in the lock of ``silver/marks``; and the writer of its commits."""


def rules_key(digest: str) -> str:
    """A set of rules, as canonical JSON."""
    return f"{RULES}/{digest}.json"


class RulesInUse(BaseModel):
    """Which set of rules new events are held against, since when, and who said so."""

    model_config = ConfigDict(frozen=True)

    digest: str
    since: datetime
    by: str


class Reached(BaseModel):
    """How far marking came; in the note of each commit of ``silver/marks``.

    ``in_use`` are the rules from then on. Events before ``until_us`` (microseconds since 1970) were held against
    rules, as far as they lay in ``silver_version``, or in ``silver/late_events`` with the number of a repair up to
    ``repair``; None: that is still to be done for all. ``marked_at_us`` is the time of the rows of the commit.
    """

    model_config = ConfigDict(frozen=True)

    in_use: RulesInUse
    marked_at_us: int
    until_us: int | None = None
    silver_version: int = -1
    repair: int = 0


@dataclass(frozen=True)
class Span:
    """A part of event time: ``since`` (included) to ``until`` (excluded), with zone."""

    since: datetime
    until: datetime


@dataclass(frozen=True)
class Sum:
    """Events, and what they stand for: money in millionths, value by currency."""

    events: int = 0
    impressions: int = 0
    clicks: int = 0
    conversions: int = 0
    cost_micros: int = 0
    value_micros: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class RuleChange:
    """What a marking changes for one version of a rule."""

    rule_id: str
    rule_version: str
    traffic_class: str
    marked: Sum = Sum()
    revoked: Sum = Sum()


@dataclass(frozen=True)
class NetChange:
    """By how much the valid impressions and clicks of a campaign change, and what these impressions cost."""

    campaign_id: str
    impressions: int
    clicks: int
    cost_micros: int


@dataclass(frozen=True)
class Marking:
    """A marking: the set of rules, the time of the events that were held against it, and what changes.

    ``net`` is what a dry run finds that gold would change by, as far as its rows are there, by campaign.
    """

    digest: str
    since: datetime
    until: datetime
    changes: tuple[RuleChange, ...]
    net: tuple[NetChange, ...] = ()
