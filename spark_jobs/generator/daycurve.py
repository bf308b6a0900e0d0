"""The distribution of traffic over the day: quietest at 04:00, busiest at 20:00 (UTC)."""

from bisect import bisect_right
from datetime import datetime, timedelta
from itertools import accumulate, pairwise

from spark_jobs.config.durations import EPOCH, microseconds

_HOURLY = (30, 20, 14, 11, 10, 12, 20, 34, 48, 56, 60, 64, 68, 66, 64, 66, 70, 78, 88, 97, 100, 92, 72, 48)
_HOUR = 3_600_000_000
_CELL = _HOUR // 12


class DayCurve:
    """The cumulative traffic from ``begin`` to ``end``, both in microseconds since 1970."""

    def __init__(self, start: datetime, span: timedelta) -> None:
        self.begin = microseconds(start - EPOCH)
        self.end = self.begin + microseconds(span)
        self._edges: list[int] = [*range(self.begin, self.end, _CELL), self.end]
        volumes = [_rate((left + right) // 2) * (right - left) for left, right in pairwise(self._edges)]
        total = sum(volumes)
        self._shares: list[float] = [0.0, *(volume / total for volume in accumulate(volumes))]

    def moment(self, share: float) -> int:
        """The time when ``share`` (in [0, 1)) of the traffic has passed, in whole milliseconds, before ``end``."""
        cell = min(bisect_right(self._shares, share), len(self._shares) - 1) - 1
        low, high = self._shares[cell], self._shares[cell + 1]
        left, right = self._edges[cell], self._edges[cell + 1]
        moment = left + int((right - left) * (share - low) / (high - low))
        whole = moment + -moment % 1000
        return whole if whole < self.end else (self.end - 1) // 1000 * 1000

    def share_before(self, moment: int) -> float:
        """The share of the traffic before ``moment``."""
        if not self.begin < moment < self.end:
            return float(moment >= self.end)
        cell = bisect_right(self._edges, moment) - 1
        left, right = self._edges[cell], self._edges[cell + 1]
        low, high = self._shares[cell], self._shares[cell + 1]
        return low + (high - low) * (moment - left) / (right - left)


def _rate(moment: int) -> float:
    """The traffic rate at ``moment``, interpolated linearly between the hourly values."""
    hour, past = divmod(moment, _HOUR)
    here, there = _HOURLY[hour % 24], _HOURLY[(hour + 1) % 24]
    return here + (there - here) * past / _HOUR
