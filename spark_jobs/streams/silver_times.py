"""The newest event times in silver, from the statistics in its log: no row is read."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from pyspark.sql import functions as F

from spark_jobs.contract.events import HEARTBEAT
from spark_jobs.contract.tables import SILVER_EVENTS
from spark_jobs.lake.layout import commit_key
from spark_jobs.spark.event_times import newest_event_time
from spark_jobs.spark.open_lake import OpenLake

_TRUNCATED = timedelta(microseconds=999)
"""Delta truncates the times in its statistics to milliseconds."""


@dataclass(frozen=True)
class CommitTimes:
    """The largest event times of the rows that a commit of silver adds; None where it adds no such row.

    They are truncated to milliseconds.
    """

    event: datetime | None = None
    heartbeat: datetime | None = None
    is_known: bool = True
    """Whether the commit gives its times: false if a file has no statistics."""

    @property
    def newest(self) -> datetime | None:
        """Of all rows."""
        return _latest((self.event, self.heartbeat))


def times_in(commit: bytes) -> CommitTimes:
    """The times of ``commit``, a file of silver's log; rows that it only moves to other files do not count."""
    times: dict[bool, list[datetime]] = {True: [], False: []}
    for line in commit.splitlines():
        add: dict[str, Any] | None = json.loads(line).get("add")
        if add is None or not add.get("dataChange", True):
            continue
        newest = json.loads(add.get("stats") or "{}").get("maxValues", {}).get("event_time")
        if newest is None:
            return CommitTimes(is_known=False)
        times[add["partitionValues"]["event_type"] == HEARTBEAT].append(datetime.fromisoformat(newest))
    return CommitTimes(event=_latest(times[False]), heartbeat=_latest(times[True]))


class SilverTimes:
    """The newest event times in silver, followed commit by commit.

    A commit costs one small read. Spark is asked once for the newest time of older rows, and opens only the files whose
    statistics reach past the newest time in the last commit.
    """

    def __init__(self, lake: OpenLake) -> None:
        """Nothing is read yet."""
        self._lake = lake
        self._next: int | None = None
        self._event: datetime | None = None
        self._newest: datetime | None = None
        self._is_complete = False
        """Whether ``_newest`` covers all of silver, not only the commits followed."""

    def follow(self) -> bool:
        """Reads the commits since the last call; the first call only remembers where silver ends.

        Returns:
            Whether one of them brought an event that is newer than all events in the commits followed so far.
        """
        if self._next is None:
            newest = self._lake.newest_commit(SILVER_EVENTS.path)
            self._next, self._is_complete = (0, True) if newest is None else (newest + 1, False)
        has_moved = False
        while (commit := self._lake.files.read(commit_key(SILVER_EVENTS, self._next))) is not None:
            self._next += 1
            times = times_in(commit)
            if not times.is_known:
                self._is_complete, has_moved = False, True
            if times.event and (self._event is None or times.event > self._event):
                self._event, has_moved = times.event, True
            if times.newest:
                self._newest = _latest((self._newest, times.newest + _TRUNCATED))
        return has_moved

    def newest(self) -> datetime | None:
        """The largest event time in silver, heartbeats included, or up to a millisecond more; None if it has no row."""
        if not self._is_complete:
            self._newest = _latest((self._newest, self._asked_of_spark()))
            self._is_complete = True
        return self._newest

    def _asked_of_spark(self) -> datetime | None:
        silver = self._lake.read(SILVER_EVENTS)
        at_least = self._newest_in_last_commit()
        if at_least is not None:
            # By the partition and by the time itself: Delta skips files by either.
            silver = silver.where(F.col("event_date") >= F.lit(at_least.date()))
            silver = silver.where(F.col("event_time") >= F.lit(at_least))
        return newest_event_time(silver)

    def _newest_in_last_commit(self) -> datetime | None:
        """The newest time of the last commit that adds a row; None if unknown from the log."""
        for version in range((self._next or 0) - 1, -1, -1):
            commit = self._lake.files.read(commit_key(SILVER_EVENTS, version))
            times = times_in(commit) if commit is not None else CommitTimes(is_known=False)
            if times.newest or not times.is_known:
                return times.newest
        return None


def _latest(times: Iterable[datetime | None]) -> datetime | None:
    return max((time for time in times if time is not None), default=None)
