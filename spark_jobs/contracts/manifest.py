"""What a checkpoint belongs to: a query and the settings that its state depends on."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from spark_jobs.contracts.choices import DeduplicateMode, JoinState
from spark_jobs.contracts.durations import format_duration, parse_duration
from spark_jobs.contracts.jobs import (
    ATTRIBUTE,
    CAMPAIGN_STATS_QUERY,
    DEDUPLICATE,
    INGEST,
    JOB_OF_QUERY,
    MOVING_AVERAGE,
    SESSIONIZE,
    USER_STATUS_QUERY,
)
from spark_jobs.contracts.settings import Settings

STATE_FORMATS = dict.fromkeys(JOB_OF_QUERY, 1)
"""By query, raised whenever a change of its code makes its earlier checkpoints unusable."""
FILES, KAFKA = "files", "kafka"


class Verdict(StrEnum):
    """What becomes of a checkpoint whose setting has changed."""

    SAFE = "safe"
    """The new value holds from the next batch on."""
    IGNORED = "ignored by Spark"
    """The checkpoint's value goes on to hold."""
    BREAKING = "breaking"
    """Rows would be wrong or the query would fail: it is not started."""


class Manifest(BaseModel):
    """Lies beside a checkpoint, as ``_checkpoints/<job>/<query>/v<N>.json``."""

    model_config = ConfigDict(frozen=True)

    query: str
    package_version: str
    state_format: int
    created_at: datetime
    settings: dict[str, str]
    """By name, those that the state depends on, as text."""
    follows: str = ""
    """Who had written to the table before a version that was begun anew; empty: nobody."""
    begins_at: str = ""
    """Where a version that was begun anew starts reading, as Spark's JSON of Kafka offsets; empty: where all do."""


@dataclass(frozen=True)
class Change:
    """A setting that differs between a checkpoint and a start."""

    query: str
    setting: str
    before: str
    now: str
    verdict: Verdict
    why: str


_Judge = Callable[[str, str], tuple[Verdict, str]]
"""From the value before and the value now, which differ, to what becomes of the checkpoint, and why."""


def _frozen(why: str) -> _Judge:
    return lambda _before, _now: (Verdict.BREAKING, why)


def _ignored(why: str) -> _Judge:
    return lambda _before, _now: (Verdict.IGNORED, why)


def _may_shorten(why: str) -> _Judge:
    def judge(before: str, now: str) -> tuple[Verdict, str]:
        if parse_duration(now) > parse_duration(before):
            return Verdict.BREAKING, why
        return Verdict.SAFE, "the shorter one holds from the next batch on"

    return judge


def _may_be_less(why: str) -> _Judge:
    def judge(before: str, now: str) -> tuple[Verdict, str]:
        if int(now) > int(before):
            return Verdict.BREAKING, why
        return Verdict.SAFE, "the smaller one holds from the next batch on"

    return judge


def _topics(before: str, now: str) -> tuple[Verdict, str]:
    if gone := set(before.split(",")) - set(now.split(",")):
        return Verdict.BREAKING, f"what is unread in {', '.join(sorted(gone))} would be lost"
    return Verdict.SAFE, "the new ones are read from their beginning"


_LET_GO = "the state that the longer one needs was let go by the shorter one"
_JOINED = {
    "spark.join_state": _ignored("the state goes on in the form of the first start; a reset takes the other one")
}
_ENGINE: dict[str, _Judge] = {
    "spark.shuffle_partitions": _ignored("the state is divided as it was at the first start"),
    "spark.state_store": _frozen("the state is written in the form of the other one"),
}
_ANOTHER_CLOCK = _frozen("what is waited for is noted in the time of the other clock")
_PARTITIONS = {"spark.shuffle_partitions": _ENGINE["spark.shuffle_partitions"]}
_JUDGES: dict[str, dict[str, _Judge]] = {
    INGEST: {
        "source": _frozen("the place reached in one kind of source means nothing in the other"),
        "topics": _topics,
    },
    DEDUPLICATE: {
        "deduplicate.mode": _frozen("the state holds other columns"),
        "deduplicate.watermark": _may_shorten("repeats of events already forgotten would be kept twice"),
        **_ENGINE,
    },
    ATTRIBUTE: {
        "attribute.join": _frozen("rows held for one kind of join are put out wrongly by another"),
        "attribute.window": _may_shorten(_LET_GO),
        "attribute.impression_watermark": _may_shorten(_LET_GO),
        "attribute.click_watermark": _may_shorten(_LET_GO),
        **_JOINED,
        **_ENGINE,
    },
    SESSIONIZE: {
        "sessionize.gap": _frozen("open sessions were grouped by the other gap"),
        "sessionize.watermark": _may_shorten(_LET_GO),
        **_ENGINE,
    },
    CAMPAIGN_STATS_QUERY: {
        "attribute.window": _may_shorten(_LET_GO),
        "campaign_stats.window": _frozen("open windows are of the other length"),
        "campaign_stats.slide": _frozen("open windows begin at other times"),
        "campaign_stats.watermark": _may_shorten(_LET_GO),
        "campaign_stats.output": _frozen("the table would have open windows beside final ones"),
        **_JOINED,
        **_ENGINE,
    },
    MOVING_AVERAGE: {
        "moving_average.key": _frozen("the state is of other keys"),
        "moving_average.values": _frozen("the state is of other values"),
        "moving_average.size": _may_be_less("values that a larger number needs were let go"),
        "moving_average.clock": _ANOTHER_CLOCK,
        "moving_average.watermark": _may_shorten(_LET_GO),
        **_PARTITIONS,
    },
    USER_STATUS_QUERY: {
        "user_status.clock": _ANOTHER_CLOCK,
        "user_status.watermark": _may_shorten(_LET_GO),
        **_PARTITIONS,
    },
}


_BEFORE_IT_WAS_THERE = {"spark.join_state": JoinState.BY_KEY.value}
"""By setting, what held when there was no such setting yet."""


def state_settings(query: str, settings: Settings, source: str) -> dict[str, str]:
    """The settings that the state of ``query`` depends on, by name, as text.

    Args:
        query: its name.
        settings: of the start.
        source: FILES or KAFKA; what ingest reads.
    """
    forgets = settings.deduplicate.mode is DeduplicateMode.WITHIN_WATERMARK
    values = {
        "source": source,
        "topics": ",".join(sorted(settings.kafka.topics)) if source == KAFKA else "",
        "deduplicate.mode": settings.deduplicate.mode.value,
        "deduplicate.watermark": format_duration(settings.deduplicate.watermark) if forgets else "0s",
        "attribute.join": settings.attribute.join.value,
        "attribute.window": format_duration(settings.attribute.window),
        "attribute.impression_watermark": format_duration(settings.attribute.impression_watermark),
        "attribute.click_watermark": format_duration(settings.attribute.click_watermark),
        "sessionize.gap": format_duration(settings.sessionize.gap),
        "sessionize.watermark": format_duration(settings.sessionize.watermark),
        "campaign_stats.window": format_duration(settings.campaign_stats.window),
        "campaign_stats.slide": format_duration(settings.campaign_stats.slide),
        "campaign_stats.watermark": format_duration(settings.campaign_stats.watermark),
        "campaign_stats.output": settings.campaign_stats.output.value,
        "moving_average.key": settings.moving_average.key,
        "moving_average.values": ",".join(settings.moving_average.values),
        "moving_average.size": str(settings.moving_average.size),
        "moving_average.clock": settings.moving_average.clock.value,
        "moving_average.watermark": format_duration(settings.moving_average.watermark),
        "user_status.clock": settings.user_status.clock.value,
        "user_status.watermark": format_duration(settings.user_status.watermark),
        "spark.shuffle_partitions": str(settings.spark.partitions),
        "spark.state_store": settings.spark.state_store.value,
        "spark.join_state": settings.spark.join_state.value,
    }
    return {name: values[name] for name in _JUDGES[query]}


def changes(before: Manifest, now: dict[str, str]) -> Iterator[Change]:
    """What differs between the checkpoint of ``before`` and a start with ``now`` (see :func:`state_settings`)."""
    current = STATE_FORMATS[before.query]
    if before.state_format != current:
        why = f"adloom {before.package_version} wrote its state in another form"
        formats = str(before.state_format), str(current)
        yield Change(before.query, "state format", *formats, Verdict.BREAKING, why)
    for name, judge in _JUDGES[before.query].items():
        old, new = before.settings.get(name, _BEFORE_IT_WAS_THERE.get(name, "")), now[name]
        if old != new:
            yield Change(before.query, name, old, new, *judge(old, new))
