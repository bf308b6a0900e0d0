"""The status of each day, from where the tables stand and what has been changed since: rules without Spark or IO.

::

    event time      D 00:00                    D+1 00:00      + what the query holds back
    rows of day D     ├──────────────────────────┤──────────────────┤
    watermark      ───────────── open ──────────────────────────────▶ complete ─── restated 1 ─── audited ───▶ frozen
                                                                                              freeze_after past D+1

A day is *complete* for a table when nothing that is still on time can add a row to it or change one: the watermark of
its query has passed the end of the day by as much as the query holds rows back, ``deduplicate`` keeps no event of the
day beyond those that the query has read, and no row that began by the end of the day goes on. After
that only repairs and replays change the day, and each that does *restates* it. The day is *audited* when a replay of
all of it agreed with the table since it was complete and last changed, and *frozen* when all its rows are too old to be
changed.

A day never becomes open again, and what has restated it is counted from then on, whatever its status.

Dates with events are days, however old. Dates without any are days only among the last :data:`QUIET_DAYS`::

    events    ┃                                        ┃ ┃     ┃  ┃
    days      ┃                                        ┃┃┃┃┃┃┃┃┃┃┃┃┃
          2000-01-01                         the last QUIET_DAYS   └── the watermark has passed up to here

So one device whose clock was never set adds one row for each table, not one for each date since.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Final

from spark_jobs.config.durations import ROUNDING, UTC_ZONE
from spark_jobs.days.day import Day, DayStatus

QUIET_DAYS: Final = 400
"""Of this many days up to the newest, those without events have rows too: a year, and a month to look at it."""


@dataclass(frozen=True)
class TableProgress:
    """Where a table of gold stands.

    Attributes:
        table: its name.
        version: of the table, as the last batch of its query left it.
        watermark: of that batch; None: it had none.
        upstream: the watermark behind which ``deduplicate`` keeps no event beyond those that the query has read; None:
            it had none.
        has_upstream: whether ``deduplicate`` drops what lies behind its watermark at all.
        holds: how far the watermark must pass the time of a row until the row is emitted.
        open_since: the first event of rows that go on although the watermark has passed it; None without one.
    """

    table: str
    version: int
    watermark: datetime | None
    upstream: datetime | None
    has_upstream: bool
    holds: timedelta
    open_since: datetime | None = None

    def has_passed(self, day: Day) -> bool:
        """Whether the watermarks have passed ``day``."""
        if self.watermark is None or self.watermark < day.end + self.holds + ROUNDING:
            return False
        return not self.has_upstream or (self.upstream is not None and self.upstream >= day.end)

    def is_complete(self, day: Day) -> bool:
        """Whether the query has emitted all rows of ``day`` that it will ever emit."""
        return self.has_passed(day) and (self.open_since is None or self.open_since >= day.end)


@dataclass(frozen=True)
class DayChange:
    """The changes of one repair or replay in one day of a table: ``rows``, and differences of what they count."""

    table: str
    event_date: date
    repair: int
    decided_at: datetime
    rows: int
    impressions: int = 0
    clicks: int = 0
    cost_micros: int = 0


@dataclass(frozen=True)
class Audit:
    """A replay of a table from ``since`` (included) to ``until`` (excluded) that agreed with it."""

    table: str
    since: datetime
    until: datetime
    decided_at: datetime

    def covers(self, day: Day) -> bool:
        """Whether it looked at all of ``day``."""
        return self.table == day.table_name and self.since <= day.start and self.until >= day.end


@dataclass(frozen=True)
class Evidence:
    """The evidence that the status of days follows from.

    Attributes:
        standings: of the tables that have days.
        dates: those that are days: see :func:`days_of`.
        last_repair: number of the last repair that is done; 0 without one.
        changes: all changes of days that are not frozen; None: all were counted already.
        audits: replays that agreed.
        freeze_after: how far behind the watermark rows are final.
        now: the wall clock.
        zone: the time zone of the days.
    """

    standings: Sequence[TableProgress]
    dates: Collection[date]
    last_repair: int
    changes: Sequence[DayChange] | None
    audits: Sequence[Audit]
    freeze_after: timedelta
    now: datetime
    zone: str = UTC_ZONE


def days_of(events: Collection[date], passed: date | None) -> list[date]:
    """The dates that are days, ascending.

    Args:
        events: the dates that have events, or had some.
        passed: the last date that the watermark of ``deduplicate`` has passed; None: it has passed none.
    """
    newest = max([*events, *filter(None, [passed])], default=date.min)
    lively = [day for day in events if (newest - day).days < QUIET_DAYS]
    count = (newest - min(lively)).days + 1 if lively else 0
    return sorted({*events, *(newest - timedelta(days=number) for number in range(count))})


def next_days(before: Iterable[Day], evidence: Evidence) -> list[Day]:
    """The rows of ``gold/days`` that follow from ``evidence``, and the current rows; ordered by their key.

    Rows that nothing has changed are returned as they were, so a second call changes nothing.
    """
    known = {day.key: day for day in before}
    standings = {standing.table: standing for standing in evidence.standings}
    changes: dict[tuple[str, date], list[DayChange]] = {}
    for change in evidence.changes or ():
        changes.setdefault((change.table, change.event_date), []).append(change)
    found = {}
    for day in all_days(known.values(), evidence):
        standing = standings.get(day.table_name)
        if standing is not None:
            counted = None if evidence.changes is None else changes.get(day.key, [])
            found[day.key] = _next(day, standing, counted, evidence, is_new=day.key not in known)
        else:  # its table is gone, or its query uses another clock now
            found[day.key] = day
    return [found[key] for key in sorted(found)]


def all_days(before: Iterable[Day], evidence: Evidence) -> list[Day]:
    """The days of ``before``, but for quiet ones that are too old, and as open ones those that are new."""
    tables, dates = [standing.table for standing in evidence.standings], set(evidence.dates)
    newest = max(dates, default=date.min)

    def stays(day: Day) -> bool:
        is_recent = day.event_date in dates or (newest - day.event_date).days < QUIET_DAYS
        return is_recent or day.table_name not in tables or day.is_relied_on

    new = {(table, day): Day(table, day, zone=evidence.zone) for table in tables for day in dates}
    return list((new | {day.key: day for day in before if stays(day)}).values())


def _next(
    day: Day, standing: TableProgress, changes: Sequence[DayChange] | None, evidence: Evidence, *, is_new: bool
) -> Day:
    found = day
    if found.complete_at is None and standing.is_complete(found):
        found = replace(found, complete_at=evidence.now, watermark=standing.watermark, repair=evidence.last_repair)
    if found.complete_at is not None and found.frozen_at is None:
        found = _counted(found, changes)
        if standing.watermark and standing.watermark - found.end > evidence.freeze_after:
            found = replace(found, frozen_at=evidence.now)
    found = _audited(found, evidence.audits)
    found = replace(found, status=status_of(found))
    if found == day and not is_new:
        return day
    return replace(found, version=standing.version, updated_at=evidence.now)


def _audited(day: Day, audits: Sequence[Audit]) -> Day:
    """``day`` with the last audit that looked at all of it when it was complete."""
    if day.complete_at is None:
        return day
    decided = [audit.decided_at for audit in audits if audit.covers(day) and audit.decided_at >= day.complete_at]
    return replace(day, audited_at=max([*decided, *filter(None, [day.audited_at])], default=None))


def _counted(day: Day, changes: Sequence[DayChange] | None) -> Day:
    """``day`` with what has changed it since it was complete."""
    later = [change for change in changes or () if change.repair > day.repair]
    if not later:
        return day
    return replace(
        day,
        restated=len({change.repair for change in later}),
        restated_at=max(change.decided_at for change in later),
        changes=sum(change.rows for change in later),
        impressions=sum(change.impressions for change in later),
        clicks=sum(change.clicks for change in later),
        cost_micros=sum(change.cost_micros for change in later),
    )


def status_of(day: Day) -> DayStatus:
    """The status that the other fields of ``day`` give: the first that holds of those below."""
    if day.complete_at is None:
        return DayStatus.OPEN
    if day.frozen_at is not None:
        return DayStatus.FROZEN
    if day.audited_at is not None and (day.restated_at is None or day.audited_at > day.restated_at):
        return DayStatus.AUDITED
    return DayStatus.RESTATED if day.restated else DayStatus.COMPLETE


def passed(before: Iterable[Day], standing: TableProgress) -> list[Day]:
    """Those days of ``before`` that are open although the watermarks have passed them, the oldest first."""
    own = [day for day in before if day.table_name == standing.table and day.complete_at is None]
    return sorted((day for day in own if standing.has_passed(day)), key=lambda day: day.event_date)
