"""Formats times for ``event_time``."""

from collections.abc import Callable
from datetime import timedelta
from functools import lru_cache

from spark_jobs.config.durations import EPOCH

_MINUTE = 60_000_000

# Cumulative shares of the formats: milliseconds, microseconds, else milliseconds with an offset.
_MILLISECONDS, _MICROSECONDS = 0.965, 0.99
_OFFSETS = (("+02:00", 120), ("+01:00", 60), ("-05:00", -300), ("+05:30", 330))


def write_time(moment: int, random: Callable[[], float]) -> tuple[int, str]:
    """``moment`` (microseconds since 1970), mostly truncated to milliseconds, and its RFC 3339 text."""
    style = random()
    if style < _MILLISECONDS:
        moment -= moment % 1000
        minute, micros = divmod(moment, _MINUTE)
        second, fraction = divmod(micros // 1000, 1000)
        return moment, f"{_minute_text(minute)}{second:02d}.{fraction:03d}Z"
    minute, micros = divmod(moment, _MINUTE)
    second, fraction = divmod(micros, 1_000_000)
    if style < _MICROSECONDS:
        return moment, f"{_minute_text(minute)}{second:02d}.{fraction:06d}Z"
    suffix, minutes = _OFFSETS[int(random() * len(_OFFSETS))]
    return moment - moment % 1000, f"{_minute_text(minute + minutes)}{second:02d}.{fraction // 1000:03d}{suffix}"


@lru_cache(maxsize=4096)
def _minute_text(minute: int) -> str:
    return (EPOCH + timedelta(minutes=minute)).strftime("%Y-%m-%dT%H:%M:")
