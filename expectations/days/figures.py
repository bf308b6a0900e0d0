"""The figures that the part shows, chosen from the rows of ``gold/days``."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import takewhile

from spark_jobs.contract.tables import CAMPAIGN_STATS
from spark_jobs.days.day import Day, DayStatus

SHOWN = timedelta(days=30)
"""How many days the grid has at most, the last of them being the newest."""
MOST_RESTATED = 10


@dataclass(frozen=True)
class RestatedDay:
    """A date on which tables were restated.

    Attributes:
        event_date: the date.
        tables: its days that were restated, by name of the table.
    """

    event_date: date
    tables: tuple[Day, ...]

    @property
    def restated_at(self) -> datetime:
        """When the last of the changes was planned."""
        return max(day.restated_at for day in self.tables if day.restated_at)

    @property
    def restated(self) -> int:
        """How often the most restated of its tables was restated."""
        return max(day.restated for day in self.tables)

    @property
    def changes(self) -> int:
        """Rows changed in all tables."""
        return sum(day.changes for day in self.tables)

    @property
    def counted(self) -> Day | None:
        """The day whose differences count: other tables count the same impressions and clicks."""
        return next((day for day in self.tables if day.table_name == CAMPAIGN_STATS.name), None)


@dataclass(frozen=True)
class DaysFigures:
    """Everything the part shows.

    Attributes:
        dates: of the grid, ascending.
        tables: by name of a table, its day for each of ``dates``; None where it has none.
        done_until: every day up to this one is done in every table; None: the first is open.
        newest: the last date that there is.
        statuses: how many days of the grid have each status.
        restated: dates that were restated, the last changed first, as many as are listed.
        restated_count: how many dates were restated.
        zone: the time zone of the dates.
    """

    dates: tuple[date, ...]
    tables: dict[str, tuple[Day | None, ...]]
    done_until: date | None
    newest: date
    statuses: dict[DayStatus, int]
    restated: tuple[RestatedDay, ...]
    restated_count: int
    zone: str


def days_figures(days: Sequence[Day]) -> DaysFigures | None:
    """The figures of ``days``, the rows of ``gold/days``; None if there are no rows."""
    if not days:
        return None
    known = {day.key: day for day in days}
    every = sorted({day.event_date for day in days})
    newest = every[-1]
    dates = tuple(day for day in every if day > newest - SHOWN)
    names = list(dict.fromkeys(day.table_name for day in days))
    open_dates = {day.event_date for day in days if day.status is DayStatus.OPEN}
    done = list(takewhile(lambda day: day not in open_dates, every))
    tables = {name: tuple(known.get((name, day)) for day in dates) for name in names}
    shown = [day for row in tables.values() for day in row if day]
    by_date: dict[date, list[Day]] = {}
    for day in days:
        if day.restated:
            by_date.setdefault(day.event_date, []).append(day)
    changed = [RestatedDay(when, tuple(tables)) for when, tables in by_date.items()]
    latest = sorted(changed, key=lambda one: (one.restated_at, one.event_date), reverse=True)
    return DaysFigures(
        dates=dates,
        tables=tables,
        done_until=done[-1] if done else None,
        newest=newest,
        statuses={status: sum(day.status is status for day in shown) for status in DayStatus},
        restated=tuple(latest[:MOST_RESTATED]),
        restated_count=len(changed),
        zone=days[0].zone,
    )
