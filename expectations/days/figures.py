"""What the part shows, chosen from the rows of ``gold/days``."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import takewhile

from spark_jobs.contracts.days import Day, DayStatus

SHOWN = timedelta(days=30)
"""How many days the grid has at most, the last of them being the newest."""
MOST_RESTATED = 10


@dataclass(frozen=True)
class DaysFigures:
    """Everything the part shows.

    Attributes:
        dates: of the grid, ascending.
        tables: by name of a table, its day for each of ``dates``; None where it has none.
        done_until: every day up to this one is done in every table; None: the first is open.
        newest: the last date that there is.
        statuses: how many days of the grid have each status.
        restated: days that were restated, the last changed first, as many as are listed.
        restated_count: how many days were restated.
    """

    dates: tuple[date, ...]
    tables: dict[str, tuple[Day | None, ...]]
    done_until: date | None
    newest: date
    statuses: dict[DayStatus, int]
    restated: tuple[Day, ...]
    restated_count: int


def days_figures(days: Sequence[Day]) -> DaysFigures | None:
    """The figures of ``days``, the rows of ``gold/days``; None if there are none."""
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
    restated = [day for day in days if day.restated_at]
    latest = sorted(restated, key=lambda day: (day.restated_at, day.event_date, day.table_name), reverse=True)
    return DaysFigures(
        dates=dates,
        tables=tables,
        done_until=done[-1] if done else None,
        newest=newest,
        statuses={status: sum(day.status is status for day in shown) for status in DayStatus},
        restated=tuple(latest[:MOST_RESTATED]),
        restated_count=len(restated),
    )
