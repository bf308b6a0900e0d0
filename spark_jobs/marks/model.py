"""The result of a marking: what it changes, by rule and by campaign."""

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
    """Counts of events, and their worth: money in millionths, value by currency."""

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
    """A marking: the set of rules, the time range of the events that it checked, and what changes.

    ``net``: by campaign, how existing rows of gold would change; only a dry run computes it.
    """

    digest: str
    since: datetime
    until: datetime
    changes: tuple[RuleChange, ...]
    net: tuple[NetChange, ...] = ()
