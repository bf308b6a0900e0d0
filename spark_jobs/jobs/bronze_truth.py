"""All events that count, computed from bronze: of each event the first copy, late ones included, expired ones not.

::

    bronze   a 12:00 ──── a 12:00 ✗ a copy        b 09:30, late         c 31 days old ✗ expired
    truth    a 12:00                              b 09:30

**What is read.** A date costs the files of bronze that hold event times of it: Delta skips the others by their
statistics. The first copy of an event may have another time, so it may lie in another file. Whether it does, silver and
``silver/late_events`` tell: if one of them holds the copy that is first here, it was the first of all, because a query
keeps what it sees first, and a repair what was received before that. Only for events that neither confirms are all
copies looked up, by their key in the whole of bronze. On a repaired lake these are copies with another date, and rows
that somebody has changed.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.contracts.events import HEARTBEAT, OK
from spark_jobs.jobs.lateness import IS_EXPIRED
from spark_jobs.transforms.kept import with_columns
from spark_jobs.transforms.late import as_silver, first_of_each
from spark_jobs.transforms.open_rows import KEY

_COPY = (*KEY, "event_time", "ingest_time")
"""What identifies a copy of an event."""
_DAY = timedelta(days=1)


class BronzeTruth:
    """The events, date by date; what was computed once is kept until :meth:`forget`.

    Args:
        bronze: up to the version that ``deduplicate`` has read.
        silver: what it has written since.
        known: the events that were late for silver, expired ones too, with ``is_expired``; None: there are none.
    """

    def __init__(self, bronze: DataFrame, silver: DataFrame, known: DataFrame | None) -> None:
        self._copies, self._silver = bronze.where(F.col("verdict") == OK), silver
        self._late = None if known is None else known.where(~F.col(IS_EXPIRED))
        self._expired = None if known is None else known.where(IS_EXPIRED).select(*_COPY)
        self._parts: list[tuple[set[date], DataFrame]] = []

    def of_dates(self, dates: Sequence[date]) -> DataFrame:
        """The events with an ``event_date`` among ``dates``: the columns of silver."""
        known = {day for days, _ in self._parts for day in days}
        if missing := sorted(set(dates) - known):
            self._parts.append((set(missing), self._computed(missing)))
        used = [rows for days, rows in self._parts if days & set(dates)]
        events = used[0] if used else self._silver.where(F.lit(False))
        for more in used[1:]:
            events = events.unionByName(more)
        return events.where(F.col("event_date").isin(list(dates)))

    def forget(self) -> None:
        """Frees what was kept."""
        for _, rows in self._parts:
            rows.unpersist()
        self._parts.clear()

    def _computed(self, dates: Sequence[date]) -> DataFrame:
        first = self._without_late_elsewhere(self._first(self._copies.where(_on(dates))), dates).persist()
        doubtful = self._doubtful(first, dates).localCheckpoint()
        if doubtful.isEmpty():
            return first
        everywhere = self._first(self._copies.join(doubtful, on=list(KEY), how="left_semi"))
        settled = everywhere.where(F.col("event_date").isin(list(dates)))
        whole = first.join(doubtful, on=list(KEY), how="left_anti").unionByName(settled).persist()
        whole.count()
        first.unpersist()
        return whole

    def _first(self, copies: DataFrame) -> DataFrame:
        events = as_silver(copies)
        if self._expired is not None:
            events = events.join(self._expired, on=list(_COPY), how="left_anti")
        silver = self._silver
        return with_columns(first_of_each(events), dict(silver.dtypes)).select(*silver.columns)

    def _without_late_elsewhere(self, first: DataFrame, dates: Sequence[date]) -> DataFrame:
        """``first`` without copies of an event that was received earlier, came late, and is of another date."""
        if self._late is None:
            return first
        elsewhere = self._late.where(~F.col("event_date").isin(list(dates)))
        others = elsewhere.select(*KEY, F.col("ingest_time").alias("late_ingest"))
        is_earlier = [F.col(f"first.{name}") == F.col(f"late.{name}") for name in KEY]
        is_earlier.append(F.col("late_ingest") <= F.col("ingest_time"))
        return first.alias("first").join(others.alias("late"), on=is_earlier, how="left_anti")

    def _doubtful(self, first: DataFrame, dates: Sequence[date]) -> DataFrame:
        """The keys of ``first`` of which neither silver nor the late events have the same copy."""
        kept = self._silver.where(F.col("event_date").isin(list(dates)) & (F.col("event_type") != HEARTBEAT))
        confirmed = kept.select(*_COPY)
        if self._late is not None:
            confirmed = confirmed.unionByName(self._late.where(F.col("event_date").isin(list(dates))).select(*_COPY))
        return first.join(confirmed, on=list(_COPY), how="left_anti").select(*KEY)


def _on(dates: Sequence[date]) -> Column:
    """Whether ``event_time`` lies on one of ``dates``, by ranges: bronze has no column for the date."""
    chosen = F.lit(False)
    for first, last in _runs(dates):
        begin, end = (datetime(day.year, day.month, day.day, tzinfo=UTC) for day in (first, last + _DAY))
        chosen |= (F.col("event_time") >= F.lit(begin)) & (F.col("event_time") < F.lit(end))
    return chosen


def _runs(dates: Sequence[date]) -> Iterator[tuple[date, date]]:
    """Consecutive ``dates`` (ascending) as first and last."""
    first = last = dates[0]
    for day in dates[1:]:
        if day != last + _DAY:
            yield first, last
            first = day
        last = day
    yield first, last
