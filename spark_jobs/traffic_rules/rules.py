"""Rules that define which events are invalid traffic, and their versions.

A rule is data. Its version is computed from its whole content, including its lists: equal rules have equal versions,
wherever they were read from.
"""

import json
from collections.abc import Iterable
from datetime import UTC, timedelta
from enum import StrEnum
from hashlib import sha256
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    field_validator,
    model_validator,
)

from spark_jobs.config.durations import Duration
from spark_jobs.contract.events import CLICK, CONVERSION, EVENT_TYPES
from spark_jobs.traffic_rules.networks import network_order, parse_network
from spark_jobs.traffic_rules.patterns import parse_pattern

CRAWLER_LIST = "crawler-user-agents"
"""The package of PyPI with the patterns of crawlers."""
ELSEWHERE_WINDOW = timedelta(hours=1)
"""How long after its impression a ``repeat`` rule compares a click with it: as the default of ``attribute.window``."""
_VERSION_DIGITS = 12


class TrafficClass(StrEnum):
    """The classes of invalid traffic, as the Media Rating Council names them."""

    GIVT = "givt"
    """General: found by lists and simple counts."""
    SIVT = "sivt"
    """Sophisticated: found by relations between events."""


class Key(StrEnum):
    """Whose events are counted together."""

    USER_ID = "user_id"
    IP = "ip"


def _texts(value: object) -> object:
    return (value,) if isinstance(value, str) else value


def _event_types(names: tuple[str, ...]) -> tuple[str, ...]:
    if unknown := [name for name in names if name not in EVENT_TYPES]:
        raise ValueError(f"{unknown[0]!r} is not an event type; choose from {', '.join(EVENT_TYPES)}")
    return tuple(sorted(set(names)))


def _longer_than_nothing(duration: timedelta) -> timedelta:
    if not duration:
        raise ValueError("no time passes in 0s; give it a length, as in 1min")
    return duration


EventTypes = Annotated[tuple[str, ...], Field(min_length=1), BeforeValidator(_texts), AfterValidator(_event_types)]
Length = Annotated[Duration, AfterValidator(_longer_than_nothing)]
Time = Annotated[AwareDatetime, AfterValidator(lambda time: time.astimezone(UTC))]


class _Rule(BaseModel):
    """The fields of rules of all kinds. A rule of several event types applies to each of them by itself."""

    model_config = ConfigDict(frozen=True, extra="forbid", serialize_by_alias=True)
    allowed_types: ClassVar[tuple[str, ...]] = EVENT_TYPES

    id: str = Field(pattern=r"^[a-z0-9_-]{1,64}$")
    traffic_class: TrafficClass = Field(alias="class")
    event_type: EventTypes
    since: Time | None = Field(None, alias="from")
    until: Time | None = Field(None, alias="to")

    @model_validator(mode="after")
    def _means_something(self) -> Self:
        if wrong := [name for name in self.event_type if name not in self.allowed_types]:
            raise ValueError(f"event_type {wrong[0]}: this kind is for {' and '.join(self.allowed_types)} only")
        if self.since and self.until and self.since >= self.until:
            raise ValueError(f"to {self.until.isoformat()} is not after from {self.since.isoformat()}")
        return self

    @property
    def canonical(self) -> str:
        """The rule as JSON: the same text for equal rules."""
        return _canonical(self.model_dump(mode="json", exclude_none=True))

    @property
    def version(self) -> str:
        """The version, computed from :attr:`canonical`."""
        return sha256(self.canonical.encode()).hexdigest()[:_VERSION_DIGITS]

    @property
    def reach(self) -> timedelta:
        """How far from an event others can matter to the rule."""
        return timedelta()


class UserAgentRule(_Rule):
    """The user agent matches one of ``patterns``; the loader adds those of ``list``, whose version counts too."""

    kind: Literal["user_agent_list"]
    patterns: tuple[str, ...] = Field(min_length=1)
    list: Literal["crawler-user-agents"] | None = None
    list_version: str | None = None

    @field_validator("patterns")
    @classmethod
    def _are_read_alike(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in patterns:
            parse_pattern(pattern)
        return tuple(dict.fromkeys(patterns))


class CidrRule(_Rule):
    """The address lies in one of ``networks``. An IPv4 address is the same one as within IPv6 (``::ffff:a.b.c.d``)."""

    kind: Literal["cidr"]
    networks: tuple[str, ...] = Field(min_length=1)

    @field_validator("networks")
    @classmethod
    def _in_order(cls, networks: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(str, sorted({parse_network(text) for text in networks}, key=network_order)))


class RateRule(_Rule):
    """More than ``threshold`` events of a key in a tumbling window, aligned to 1970; all of them are marked."""

    kind: Literal["rate"]
    key: Key
    window: Length
    threshold: int = Field(ge=1)

    @property
    def reach(self) -> timedelta:
        """See :class:`_Rule`."""
        return self.window


class RepeatRule(_Rule):
    """A click that has ``threshold`` or more earlier clicks on its impression, none older than ``window``."""

    allowed_types: ClassVar[tuple[str, ...]] = (CLICK,)
    kind: Literal["repeat"]
    window: Length
    threshold: int = Field(ge=1)
    # None rather than false keeps the field out of the version: rules from before it existed keep theirs.
    without_elsewhere: Annotated[bool | None, AfterValidator(lambda given: given or None)] = None

    @property
    def reach(self) -> timedelta:
        """See :class:`_Rule`; the impression of an earlier click can matter too."""
        return self.window + ELSEWHERE_WINDOW if self.without_elsewhere else self.window


class ElsewhereRule(_Rule):
    """A click up to ``window`` after its impression that differs from it in both address and user agent."""

    allowed_types: ClassVar[tuple[str, ...]] = (CLICK,)
    kind: Literal["elsewhere"]
    window: Length

    @property
    def reach(self) -> timedelta:
        """See :class:`_Rule`."""
        return self.window


class DelayRule(_Rule):
    """A click less than ``threshold`` after its impression, or a conversion after a click of its user."""

    allowed_types: ClassVar[tuple[str, ...]] = (CLICK, CONVERSION)
    kind: Literal["delay"]
    threshold: Length

    @property
    def reach(self) -> timedelta:
        """See :class:`_Rule`."""
        return self.threshold


class SequenceRule(_Rule):
    """A rate, but only if the key has no event of the types ``without`` in the window."""

    kind: Literal["sequence"]
    key: Key
    window: Length
    threshold: int = Field(ge=0)
    without: EventTypes

    @model_validator(mode="after")
    def _can_happen(self) -> Self:
        if both := sorted({*self.event_type} & {*self.without}):
            raise ValueError(f"without {both[0]}: that is its event_type too, so it would mark nothing; leave it out")
        return self

    @property
    def reach(self) -> timedelta:
        """See :class:`_Rule`."""
        return self.window


Rule = Annotated[
    UserAgentRule | CidrRule | RateRule | RepeatRule | ElsewhereRule | DelayRule | SequenceRule,
    Field(discriminator="kind"),
]
RULE: TypeAdapter[Rule] = TypeAdapter(Rule)
"""Checks a rule."""
KINDS = ("user_agent_list", "cidr", "rate", "repeat", "elsewhere", "delay", "sequence")
"""The kinds of rules."""


class RuleSet(BaseModel):
    """Rules that are applied together, in the order of their ids."""

    model_config = ConfigDict(frozen=True, extra="forbid", serialize_by_alias=True)

    rules: tuple[Rule, ...]

    @classmethod
    def of(cls, rules: Iterable[Rule]) -> Self:
        """The set of ``rules``, whose ids differ."""
        return cls(rules=tuple(sorted(rules, key=lambda rule: rule.id)))

    @property
    def canonical(self) -> str:
        """The set as JSON: the same text for equal sets."""
        return _canonical(self.model_dump(mode="json", exclude_none=True))

    @property
    def digest(self) -> str:
        """SHA-256 of :attr:`canonical`."""
        return sha256(self.canonical.encode()).hexdigest()

    @property
    def reach(self) -> timedelta:
        """How far from an event others can matter to any of the rules."""
        return max((rule.reach for rule in self.rules), default=timedelta())


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
