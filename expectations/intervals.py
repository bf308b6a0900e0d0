"""How long one bar of a chart over time lasts."""

from datetime import datetime, timedelta

from spark_jobs.config.durations import EPOCH

MOST_BARS = 60
OFFSET = timedelta(days=4)
"""From 1970 to the first Monday, so that weeks begin on Mondays."""
_MINUTE, _HOUR, _DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
_WEEK = 7 * _DAY
_INTERVALS = (_MINUTE, 5 * _MINUTE, 15 * _MINUTE, _HOUR, 3 * _HOUR, 6 * _HOUR, 12 * _HOUR, _DAY, 2 * _DAY, _WEEK)


def interval_between(first: datetime | None, last: datetime | None) -> timedelta:
    """The shortest round interval of which ``MOST_BARS`` reach from ``first`` to ``last``; an hour if one is None."""
    if first is None or last is None:
        return _HOUR
    for interval in _INTERVALS:
        if _bars(first, last, interval) <= MOST_BARS:
            return interval
    weeks = -(-_bars(first, last, _WEEK) // (MOST_BARS - 1))
    return weeks * _WEEK


def start_of(time: datetime, interval: timedelta) -> datetime:
    """The start of the interval that ``time`` lies in."""
    return EPOCH + OFFSET + (time - EPOCH - OFFSET) // interval * interval


def describe(interval: timedelta) -> str:
    """The length in words, as in ``5 minutes``."""
    for unit, name in ((_WEEK, "week"), (_DAY, "day"), (_HOUR, "hour"), (_MINUTE, "minute")):
        if not interval % unit:
            count = interval // unit
            return f"{count} {name}s" if count > 1 else f"one {name}"
    raise ValueError(f"no interval of whole minutes: {interval}")


def _bars(first: datetime, last: datetime, interval: timedelta) -> int:
    return (start_of(last, interval) - start_of(first, interval)) // interval + 1
