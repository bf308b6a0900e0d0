"""The scope of a marking: how far silver is complete, the periods to check, and the events around them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.config.choices import DeduplicateMode
from spark_jobs.config.durations import time_of_us
from spark_jobs.contract.events import HEARTBEAT
from spark_jobs.contract.tables import LATE_EVENTS, SILVER_EVENTS, Table
from spark_jobs.lake.at_rest import dates_there
from spark_jobs.marks.model import TimeSpan
from spark_jobs.queries.arrivals import rows_between
from spark_jobs.queries.deduplicate.query import QUERY as DEDUPLICATE
from spark_jobs.queries.facts import IS_EXPIRED, events_of, span_of
from spark_jobs.queries.identity import delay_of, replaced_in
from spark_jobs.queries.kept_columns import with_columns
from spark_jobs.queries.notes import last_note, next_watermark
from spark_jobs.restatements.late_events import copies_near
from spark_jobs.spark.event_times import newest_event_time
from spark_jobs.spark.open_lake import OpenLake
from spark_jobs.traffic_rules.kinds.common import is_within
from spark_jobs.traffic_rules.reached import Reached

_PERSONAL = {"ip": "string", "user_agent": "string"}
"""Columns that an older lake lacks."""
_COLUMNS = (
    *("event_type", "event_id", "event_time", "user_id", "impression_id"),
    *("cost_micros", "value_micros", "currency", *_PERSONAL),
)
"""The columns that rules and sums of money use."""
_HOUR, _DAY, _MICROSECOND = timedelta(hours=1), timedelta(days=1), timedelta(microseconds=1)
_MOST_SPANS = 50


@dataclass(frozen=True)
class KnownSilver:
    """A state of silver: it is complete before ``until``; ``repair`` is the last that added late events.

    ``delay``: how far apart two copies of an event may lie: see :func:`spark_jobs.queries.identity.delay_of`.
    """

    lake: OpenLake
    silver_version: int
    until: datetime
    repair: int
    silver: DataFrame
    late: DataFrame | None
    delay: timedelta | None

    @classmethod
    def of(cls, lake: OpenLake) -> "KnownSilver | None":
        """The state of ``lake``; None: it has no silver, or silver is not complete up to any time."""
        # Read the watermark before the version of silver: silver then contains everything up to that watermark.
        next_until = next_watermark(lake, DEDUPLICATE.name)
        version = lake.newest_commit(SILVER_EVENTS.path)
        if version is None:
            return None
        silver = with_columns(lake.read(SILVER_EVENTS, version=version), _PERSONAL)
        until = _known_until(lake, silver, version, next_until)
        if until is None:
            return None
        delay = delay_of(lake.settings.deduplicate)
        late_version = lake.newest_commit(LATE_EVENTS.path)
        if late_version is None:
            return cls(lake, version, until, 0, silver, None, delay)
        late = with_columns(lake.read(LATE_EVENTS, version=late_version), _PERSONAL)
        ((repair,),) = late.agg(F.max("repair")).collect()
        return cls(lake, version, until, repair or 0, silver, late.where(~F.col(IS_EXPIRED)), delay)

    @property
    def begin(self) -> datetime:
        """The first instant of the first day that has rows."""
        span = span_of(dates_there(self.lake, SILVER_EVENTS, self.silver_version), self.late)
        return _midnight(span[0]) if span else self.until

    def events(self, spans: Sequence[TimeSpan], reach: timedelta) -> DataFrame:
        """The events of ``spans``, and those within ``reach`` of them; each once."""
        near = merged([TimeSpan(span.since - reach, span.until + reach) for span in spans])
        of_dates = events_of(self.silver, self.late, None, self.delay)
        return of_dates(dates_of(near)).where(is_in(near)).select(*_COLUMNS)


def _known_until(lake: OpenLake, silver: DataFrame, version: int, next_until: datetime | None) -> datetime | None:
    """The time before which silver gets no more events."""
    if lake.settings.deduplicate.mode is DeduplicateMode.FOREVER:
        newest = newest_event_time(silver.where(F.col("event_type") != HEARTBEAT))
        return None if newest is None else newest + _MICROSECOND
    note = last_note(lake, DEDUPLICATE.name, until=version)
    until = note.watermark if note else None
    return max((time for time in (until, next_until) if time), default=None)


def new_spans(lake: OpenLake, now: KnownSilver, before: Reached, reach: timedelta) -> list[TimeSpan]:
    """The times whose marks may have changed since a marking up to ``before``; empty if nothing is new."""
    assert before.until_us is not None  # noqa: S101 otherwise all of it is new
    marked_until = time_of_us(before.until_us)
    # The window that contains marked_until has ended since, so its events before that time are checked again.
    found = [TimeSpan(marked_until - reach, now.until)] if now.until > marked_until else []
    arrived = [one.select("event_time") for one in _arrived(lake, now, before)]
    if arrived:
        times = reduce(DataFrame.unionAll, arrived).where(is_within(None, marked_until))
        hours = times.select(F.unix_micros(F.date_trunc("hour", "event_time")).alias("us")).distinct().collect()
        begins = [time_of_us(one.us) for one in hours]
        found += [TimeSpan(begin - reach, begin + _HOUR + reach) for begin in begins]
    return merged([TimeSpan(span.since, min(span.until, now.until)) for span in found])


def _arrived(lake: OpenLake, now: KnownSilver, before: Reached) -> Iterator[DataFrame]:
    """The new rows of silver, late events, and the copies in silver that these replace."""
    if now.silver_version > before.silver_version:
        rows = rows_between(lake, SILVER_EVENTS, before.silver_version + 1, now.silver_version)
        yield rows.where(F.col("event_type") != HEARTBEAT)
    if now.late is not None and now.repair > before.repair:
        late = now.late.where(F.col("repair") > before.repair)
        yield late
        yield replaced_in(copies_near(late, now.silver, lake.settings.deduplicate), late, now.delay)


def merged(spans: Iterable[TimeSpan]) -> list[TimeSpan]:
    """The same times in as few spans as possible, in order; if these are many, near ones are joined."""
    found = _joined(spans, timedelta())
    return found if len(found) <= _MOST_SPANS else _joined(found, _DAY)


def _joined(spans: Iterable[TimeSpan], gap: timedelta) -> list[TimeSpan]:
    found: list[TimeSpan] = []
    for span in sorted(spans, key=lambda one: one.since):
        if span.since >= span.until:
            continue
        if found and span.since <= found[-1].until + gap:
            found[-1] = TimeSpan(found[-1].since, max(found[-1].until, span.until))
        else:
            found.append(span)
    return found


def dates_of(spans: Iterable[TimeSpan]) -> list[date]:
    """The dates (UTC) that ``spans`` touch, in order."""
    found: set[date] = set()
    for span in spans:
        first, last = span.since.astimezone(UTC).date(), (span.until - _MICROSECOND).astimezone(UTC).date()
        found.update(first + timedelta(days=days) for days in range((last - first).days + 1))
    return sorted(found)


def is_in(spans: Sequence[TimeSpan]) -> Column:
    """Whether an event lies in one of ``spans``."""
    return reduce(Column.__or__, [is_within(span.since, span.until) for span in spans], F.lit(False))


def read_marks_of(lake: OpenLake, table: Table, spans: Sequence[TimeSpan]) -> DataFrame:
    """The rows of the table of marks in ``spans``."""
    rows = lake.read(table)
    return rows.where(F.col("event_date").isin(dates_of(spans))).where(is_in(spans))


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
