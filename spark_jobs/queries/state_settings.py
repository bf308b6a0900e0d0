"""The settings that a query's state depends on, and the effect of a change on an existing checkpoint."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from typing import TYPE_CHECKING

from spark_jobs.config.choices import JoinState
from spark_jobs.config.durations import format_duration, parse_duration
from spark_jobs.config.settings import Settings
from spark_jobs.config.topics import is_meant
from spark_jobs.contract.compatibility import Compatibility, SettingChange
from spark_jobs.queries.manifest import Manifest
from spark_jobs.spark.partitions import partitions

if TYPE_CHECKING:
    from spark_jobs.queries.query import Query

Judge = Callable[[str, str], tuple[Compatibility, str]]
"""Maps the old and the new value, which differ, to the verdict on the checkpoint, and its reason."""
TAKEN_ONCE = "an initial state is taken at the first start only"
STATE_DISCARDED = "the shorter one has already discarded the state that the longer one needs"


@dataclass(frozen=True)
class StateSetting:
    """A setting that a query's state depends on."""

    name: str
    """As in ``attribute.window``."""
    judge: Judge = field(repr=False)
    value: Callable[[Settings, str], object] | None = field(default=None, repr=False)
    """Its value, from the settings and the kind of source; by default the setting of that name."""
    before_it_existed: str = ""
    """The value in effect for checkpoints that are older than the setting."""

    def text(self, settings: Settings, source: str) -> str:
        """Its value as text."""
        return _text(self.value(settings, source) if self.value else setting(settings, self.name))


def setting(settings: Settings, name: str) -> object:
    """The value of the setting ``name``, as in ``attribute.window``."""
    section, _, key = name.partition(".")
    value: object = getattr(getattr(settings, section), key)
    return value


def setting_text(settings: Settings, name: str) -> str:
    """The value of the setting ``name`` as text."""
    return _text(setting(settings, name))


def _text(value: object) -> str:
    if isinstance(value, timedelta):
        return format_duration(value)
    if isinstance(value, Enum):
        return str(value.value)
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def needs_reset(
    name: str, why: str, value: Callable[[Settings, str], object] | None = None, *, before_it_existed: str = ""
) -> StateSetting:
    """Any change needs a reset of the checkpoint."""
    return StateSetting(name, lambda _before, _now: (Compatibility.BREAKING, why), value, before_it_existed)


def keeps_first_value(
    name: str, why: str, value: Callable[[Settings, str], object] | None = None, *, before_it_existed: str = ""
) -> StateSetting:
    """A checkpoint keeps the value of its first start; a reset takes the new one."""
    return StateSetting(name, lambda _before, _now: (Compatibility.IGNORED, why), value, before_it_existed)


def may_shorten(
    name: str, why: str, value: Callable[[Settings, str], object] | None = None, *, before_it_existed: str = ""
) -> StateSetting:
    """A duration that may become shorter, but not longer."""

    def judge(before: str, now: str) -> tuple[Compatibility, str]:
        if parse_duration(now) > parse_duration(before):
            return Compatibility.BREAKING, why
        return Compatibility.SAFE, "the shorter one takes effect from the next batch on"

    return StateSetting(name, judge, value, before_it_existed)


def may_decrease(name: str, why: str) -> StateSetting:
    """A number that may become smaller, but not larger."""

    def judge(before: str, now: str) -> tuple[Compatibility, str]:
        if int(now) > int(before):
            return Compatibility.BREAKING, why
        return Compatibility.SAFE, "the smaller one takes effect from the next batch on"

    return StateSetting(name, judge)


def more_topics(name: str, value: Callable[[Settings, str], object], *, lost: str, added: str) -> StateSetting:
    """Topics, as text separated by commas, that others may be added to; ``lost`` and ``added`` say why."""

    def judge(before: str, now: str) -> tuple[Compatibility, str]:
        if missing := [topic for topic in before.split(",") if not is_meant(topic, now.split(","))]:
            return Compatibility.BREAKING, lost.format(", ".join(sorted(missing)))
        return Compatibility.SAFE, added

    return StateSetting(name, judge, value)


PARTITIONS = keeps_first_value(
    "spark.shuffle_partitions",
    "the state keeps the number of partitions of its first start",
    lambda settings, _: partitions(settings.spark),
)
STATE_STORE = needs_reset("spark.state_store", "the other state store wrote the state")
ENGINE = (PARTITIONS, STATE_STORE)
"""For every query with a built-in stateful operator; state functions in Python need RocksDB whatever is set."""
JOIN_STATE = keeps_first_value(
    "spark.join_state",
    "the state keeps the format of its first start; a reset takes the new one",
    before_it_existed=JoinState.BY_KEY.value,
)
"""For every query with a join."""
TOLERANCE = may_shorten("attribute.tolerance", STATE_DISCARDED, before_it_existed="0s")
"""For every query that joins clicks to impressions."""


def changes(query: "Query", before: Manifest, now: dict[str, str]) -> Iterator[SettingChange]:
    """The differences between the checkpoint of ``before`` and a start with ``now`` (:meth:`Query.state_settings`)."""
    if before.state_format != query.state_format:
        why = f"adloom {before.package_version} wrote its state in another format"
        formats = str(before.state_format), str(query.state_format)
        yield SettingChange(query.name, "state format", *formats, Compatibility.BREAKING, why)
    for one in query.state:
        old, new = before.settings.get(one.name, one.before_it_existed), now[one.name]
        if old != new:
            yield SettingChange(query.name, one.name, old, new, *one.judge(old, new))
