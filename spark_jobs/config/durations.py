"""Durations as people write them: ``500ms``, ``90s``, ``5 min``, ``1h30min``, ``2d``."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer

from spark_jobs.errors import SettingsError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""The zero of Unix time."""
UTC_ZONE = "UTC"
"""The time zone of days unless the settings name another one."""
ROUNDING = timedelta(milliseconds=2)
"""Spark keeps watermarks in whole milliseconds, so a time this close behind one may not have been passed yet."""

_UNITS = {
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "min": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
}
_PART = re.compile(r"(\d+)\s*(ms|s|min|h|d)\s*")


def parse_duration(text: str) -> timedelta:
    """The duration that ``text`` names.

    Raises:
        ValueError: ``text`` is not a sequence of whole numbers, each with one of the units ms, s, min, h, d.
    """
    total, position = timedelta(), 0
    for part in _PART.finditer(text.strip()):
        if part.start() != position:
            break
        total += int(part[1]) * _UNITS[part[2]]
        position = part.end()
    if position == 0 or position != len(text.strip()):
        raise ValueError(
            f"{text!r} is not a duration; write it with its unit, as in 90s, 5min, 1h30min (ms, s, min, h, d)"
        )
    return total


def format_duration(duration: timedelta) -> str:
    """The shortest text that ``parse_duration`` reads back as ``duration`` (whole milliseconds)."""
    rest, text = duration, ""
    for unit, size in reversed(_UNITS.items()):
        count, rest = divmod(rest, size)
        text += f"{count}{unit}" if count else ""
    return text or "0s"


def milliseconds(duration: timedelta) -> int:
    """``duration`` in whole milliseconds."""
    return duration // timedelta(milliseconds=1)


def microseconds(duration: timedelta) -> int:
    """``duration`` in whole microseconds."""
    return duration // timedelta(microseconds=1)


def time_of_us(us: int) -> datetime:
    """The time with its zone (UTC) that lies ``us`` microseconds after 1970.

    Times are collected from Spark as such numbers: as times, they would pass through the zone of the machine.
    """
    return EPOCH + timedelta(microseconds=us)


def _duration(value: object) -> object:
    return parse_duration(value) if isinstance(value, str) else value


def _whole_milliseconds(value: object) -> object:
    parsed = _duration(value)
    if not isinstance(parsed, timedelta):
        raise ValueError(f"{value!r} has no unit; write it as text with its unit, as in 90s, 5min, 1h30min")  # noqa: TRY004 pydantic wants a ValueError
    if parsed % timedelta(milliseconds=1) or parsed < timedelta():
        raise ValueError(f"{value!r} is not a whole, non-negative number of milliseconds")
    return parsed


Duration = Annotated[timedelta, BeforeValidator(_whole_milliseconds), PlainSerializer(format_duration)]
"""A setting that is a duration in whole milliseconds, written with its unit."""


@dataclass(frozen=True)
class Window:
    """Event times (with zone) from ``begin`` up to, not including, ``end``."""

    begin: datetime
    end: datetime

    def __post_init__(self) -> None:
        """Refuses an invalid window.

        Raises:
            SettingsError: a bound has no zone, or the window does not end after it begins.
        """
        for what, time in (("begins", self.begin), ("ends", self.end)):
            if time.tzinfo is None:
                raise SettingsError(f"the window {what} at {time}, which has no zone; write it as 2026-03-01T00:00:00Z")
        if self.begin >= self.end:
            raise SettingsError(f"the window begins at {self.begin} and ends at {self.end}; it must end later")

    @property
    def name(self) -> str:
        """The name of its report, in UTC."""
        return "_".join(f"{time.astimezone(UTC):%Y%m%dT%H%M%S.%fZ}" for time in (self.begin, self.end))
