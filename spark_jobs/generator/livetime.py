"""Moves the times of recorded events to the present."""

import re
from bisect import bisect_right
from datetime import UTC, datetime, timedelta

from spark_jobs.config.durations import EPOCH

_EVENT_TIME = re.compile(rb'"event_time"\s*:\s*"([^"\\]{10,40})"')
_US = timedelta(microseconds=1)
_YEAR_9999_US = (datetime(9999, 1, 1, tzinfo=UTC) - EPOCH) // _US
_LEAP_US = 24 * 3600 * 1_000_000
"""A time this far past all earlier ones is a wrong clock, not the next event."""


class LiveTime:
    """Maps each recorded time to the moment the replay reached it.

    The replay's clock is the largest recorded time so far. A record's time becomes the moment when that clock first
    reached it. So the order of times, equal times and duplicates are preserved; only the pace is the replay's.

    ::

        recorded        12:00   12:10   12:05 (late)   12:10 (repeat)
        sent at         07:00:00 07:00:01 07:00:02      07:00:03
        becomes         07:00:00 07:00:01 07:00:00.5    07:00:01

    Times before the first one keep their distance to it, and so do times that jump more than a day ahead: a wrong
    clock stays wrong. A record is left unchanged if its time cannot be parsed, or would move out of the range that can
    be written.
    """

    def __init__(self) -> None:
        self._recorded_us: list[int] = []
        self._sent_us: list[int] = []

    def retime(self, record: bytes, now: datetime) -> bytes:
        """``record`` (a JSON object as text), sent at ``now`` (with time zone), with its ``event_time`` moved."""
        found = _EVENT_TIME.search(record)
        recorded = _parse(found[1]) if found else None
        if found is None or recorded is None:
            return record
        moved_us = self._moved_us((recorded - EPOCH) // _US, (now - EPOCH) // _US)
        if not 0 < moved_us < _YEAR_9999_US:
            return record
        text = (EPOCH + moved_us * _US).strftime("%Y-%m-%dT%H:%M:%S.%fZ").encode()
        return record[: found.start(1)] + text + record[found.end(1) :]

    def _moved_us(self, recorded_us: int, now_us: int) -> int:
        if not self._recorded_us or 0 < recorded_us - self._recorded_us[-1] <= _LEAP_US:
            self._recorded_us.append(recorded_us)
            self._sent_us.append(max(now_us, self._sent_us[-1] if self._sent_us else 0))
        after = bisect_right(self._recorded_us, recorded_us)
        if after in (0, len(self._recorded_us)):
            edge = 0 if after == 0 else -1
            return self._sent_us[edge] + recorded_us - self._recorded_us[edge]
        low, high = self._recorded_us[after - 1], self._recorded_us[after]
        begin, end = self._sent_us[after - 1], self._sent_us[after]
        return begin + (end - begin) * (recorded_us - low) // (high - low)


def _parse(text: bytes) -> datetime | None:
    try:
        time = datetime.fromisoformat(text.decode("ascii"))
    except ValueError:
        return None
    return time if time.tzinfo else None
