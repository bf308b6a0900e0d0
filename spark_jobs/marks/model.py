"""Marking events as invalid traffic: where its rules lie in a lake, how far it came, and what it changes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True)
class TimeSpan:
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
    """The changes of a marking for one version of a rule."""

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
    """A marking: the set of rules, the time of the events that were checked, and what changes.

    ``net`` is by how much a dry run finds that gold would change, in the rows that it has, by campaign.
    """

    digest: str
    since: datetime
    until: datetime
    changes: tuple[RuleChange, ...]
    net: tuple[NetChange, ...] = ()
