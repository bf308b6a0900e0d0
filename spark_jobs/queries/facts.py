"""The events that count, late ones included: from silver and the late events, or from bronze.

:func:`events_of` trusts what was kept and what repairs brought in. :class:`BronzeTruth` computes the same again: the
first copy of each event, also if it was late, unless it expired::

    bronze   a 12:00 ──── a 12:00 ✗ a copy        b 09:30, late         c 31 days old ✗ expired
    truth    a 12:00                              b 09:30

**What is read of bronze.** For a date, the files with event times on it, or near enough for copies; Delta skips the
others by their statistics. Whether a record is a copy may depend on records further away, where the first copy is
itself a copy of another event. So the result is compared with silver and ``silver/late_events``, which hold the same
events once a repair has seen all. Only for ids that differ, all copies are looked up in the whole of bronze: rows that
somebody has changed, copies on another date with ``deduplicate.mode = "forever"``, and copies in one block of a file,
of which silver has one.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.contract.events import HEARTBEAT, KEY, OK
from spark_jobs.contract.tables import BRONZE_EVENTS, SILVER_EVENTS
from spark_jobs.lake.at_rest import dates_there
from spark_jobs.lake.layout import Lake
from spark_jobs.queries.identity import COPY, dates_around, first_of_each, not_replaced, replaced_in, with_kept
from spark_jobs.queries.kept_columns import with_columns

IS_EXPIRED = "is_expired"
"""Column of late events: whether one came too late to correct anything."""
_DAY = timedelta(days=1)


def as_silver(bronze: DataFrame, *more: Column) -> DataFrame:
    """The events of ``bronze`` with the columns of ``silver/events``, ``source`` and ``more``."""
    names = [name for name in SILVER_EVENTS.column_names if name != "event_date"]
    kept, event_date = BRONZE_EVENTS.kept(bronze.columns), F.to_date("event_time").alias("event_date")
    return bronze.where(F.col("verdict") == OK).select(*names, event_date, *kept, "source", *more)


class BronzeTruth:
    """The events, date by date; results are cached until :meth:`forget`.

    Args:
        bronze: its rows up to the version that ``deduplicate`` has read.
        silver: what ``deduplicate`` has written.
        known: the events that were late for silver, expired ones too, with ``is_expired``; None: no event was.
        delay: how far apart two copies may lie: see :func:`spark_jobs.queries.identity.delay_of`.
    """

    def __init__(self, bronze: DataFrame, silver: DataFrame, known: DataFrame | None, delay: timedelta | None) -> None:
        self._delay = delay
        self._copies, self._silver = bronze.where(F.col("verdict") == OK), silver
        self._late = None if known is None else known.where(~F.col(IS_EXPIRED))
        self._expired = None if known is None else known.where(IS_EXPIRED)
        self._parts: list[tuple[set[date], DataFrame]] = []

    def of_dates(self, dates: Sequence[date]) -> DataFrame:
        """The events with an ``event_date`` among ``dates``, with the columns of silver."""
        known = {day for days, _ in self._parts for day in days}
        if missing := sorted(set(dates) - known):
            self._parts.append((set(missing), self._computed(missing)))
        used = [rows for days, rows in self._parts if days & set(dates)]
        events = used[0] if used else self._silver.where(F.lit(False))
        for more in used[1:]:
            events = events.unionByName(more)
        return events.where(_is_on(dates))

    def forget(self) -> None:
        """Frees the cached results."""
        for _, rows in self._parts:
            rows.unpersist()
        self._parts.clear()

    def _computed(self, dates: Sequence[date]) -> DataFrame:
        read = dates if self._delay is None else dates_around(dates, self._delay)
        found = self._first(self._copies.where(_on(read))).where(_is_on(dates)).persist()
        doubtful = self._doubtful(found, dates).localCheckpoint()
        if doubtful.isEmpty():
            return found
        everywhere = self._first(self._copies.join(doubtful, on=list(KEY), how="left_semi"), doubtful)
        settled = everywhere.where(_is_on(dates))
        whole = found.join(doubtful, on=list(KEY), how="left_anti").unionByName(settled).persist()
        whole.count()
        found.unpersist()
        return whole

    def _first(self, copies: DataFrame, doubtful: DataFrame | None = None) -> DataFrame:
        events, silver = as_silver(copies), self._silver
        if self._expired is not None:
            events = self._without_expired(events, self._expired)
        if doubtful is not None:
            events = with_kept(events, self._silver.join(doubtful, on=list(KEY), how="left_semi"))
        return with_columns(first_of_each(events, self._delay), dict(silver.dtypes)).select(*silver.columns)

    def _without_expired(self, events: DataFrame, expired: DataFrame) -> DataFrame:
        """``events`` without expired ones and their copies. Events in silver were on time, so they stay."""
        copies = replaced_in(events, expired, self._delay).select(*COPY)
        gone = copies.join(self._silver.select(*COPY), on=list(COPY), how="left_anti")
        return events.join(gone, on=list(COPY), how="left_anti")

    def _doubtful(self, found: DataFrame, dates: Sequence[date]) -> DataFrame:
        """The keys for which silver and the late events have other events than ``found``."""
        known = events_of(self._silver, self._late, None, self._delay)(dates).select(*COPY)
        own = found.select(*COPY)
        sides = (own, known), (known, own)
        one, other = (rows.join(others, on=list(COPY), how="left_anti").select(*KEY) for rows, others in sides)
        return one.unionByName(other).distinct()


def _is_on(dates: Sequence[date]) -> Column:
    return F.col("event_date").isin(list(dates))


def _on(dates: Sequence[date]) -> Column:
    """Whether ``event_time`` lies on one of ``dates``, as ranges: bronze has no column for the date."""
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


def events_of(
    silver: DataFrame, late: DataFrame | None, initial: DataFrame | None, delay: timedelta | None
) -> Callable[[Sequence[date]], DataFrame]:
    """Returns a function from dates to their events, each once.

    Args:
        silver: the rows of silver.
        late: the events of ``silver/late_events`` that have not expired; None: no event. Of a copy in silver and one
            here, this one counts, because it was received first.
        initial: events that the query began with, with ``event_date``; None: no event.
        delay: how far apart two copies may lie: see :func:`spark_jobs.queries.identity.delay_of`.

    Returns:
        A function from values of ``event_date`` to events with the columns of silver.
    """

    def of_dates(dates: Sequence[date]) -> DataFrame:
        on_date = F.col("event_date").isin(list(dates))
        events = silver.where(on_date & (F.col("event_type") != HEARTBEAT))
        if late is not None:
            near = late if delay is None else late.where(F.col("event_date").isin(dates_around(dates, delay)))
            events = not_replaced(events, near, delay).unionByName(
                _like(late.where(on_date), silver), allowMissingColumns=True
            )
        if initial is not None:
            events = events.unionByName(_like(initial.where(on_date), silver), allowMissingColumns=True)
        return events.select(*silver.columns)

    return of_dates


def silver_span(lake: Lake) -> tuple[date, date] | None:
    """The first and the last ``event_date`` of silver, as its log has them now; None: no rows."""
    version = lake.newest_commit(SILVER_EVENTS.path)
    return None if version is None else dates_there(lake, SILVER_EVENTS, version)


def span_of(known: tuple[date, date] | None, *others: DataFrame | None) -> tuple[date, date] | None:
    """The first and the last ``event_date`` of a span that is ``known`` and of ``others``; None: no rows."""
    found = [*(known or ())]
    for rows in others:
        if rows is not None:
            first, last = rows.agg(F.min("event_date"), F.max("event_date")).collect()[0]
            found += [] if first is None else [first, last]
    return (min(found), max(found)) if found else None


def _like(rows: DataFrame, silver: DataFrame) -> DataFrame:
    return rows.select(*[name for name in silver.columns if name in rows.columns])
