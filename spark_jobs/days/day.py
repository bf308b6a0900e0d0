"""When a day is done: a row of ``gold/days``, its status, and where the small files about days lie."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from typing import Any
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict

from spark_jobs.config.durations import UTC_ZONE
from spark_jobs.contract.tables import DAYS
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.table_files import read_small
from spark_jobs.places import DAYS_WRITER, PROGRESS

_DAY = timedelta(days=1)
DAYS_SEEN = f"{PROGRESS}/{DAYS_WRITER}/seen.json"
"""The input that ``gold/days`` has taken account of, as JSON: see :class:`DaysSeen`."""


def midnight(day: date, zone: str) -> datetime:
    """When ``day`` begins in the time zone ``zone``; with zone (UTC).

    Where clocks are put forward at midnight, it begins with the first instant that exists.
    """
    return datetime.combine(day, time(), ZoneInfo(zone)).astimezone(UTC)


def date_in(moment: datetime, zone: str) -> date:
    """The date of ``moment``, a time with its zone, in the time zone ``zone``."""
    return moment.astimezone(ZoneInfo(zone)).date()


def dates_in(dates: Iterable[date], zone: str) -> set[date]:
    """The dates in the time zone ``zone`` that have a part of one of ``dates``, which are of UTC."""
    ends = (midnight(day, UTC_ZONE) for day in dates)
    return {date_in(end + more, zone) for end in ends for more in (timedelta(), _DAY - timedelta(microseconds=1))}


class DayStatus(StrEnum):
    """How far the rows of a day can be relied on."""

    OPEN = "open"
    COMPLETE = "complete"
    AUDITED = "audited"
    RESTATED = "restated"
    FROZEN = "frozen"


@dataclass(frozen=True)
class Day:
    """A row of ``gold/days``; times are with zone (UTC). Its fields are the columns, whose meaning stands there."""

    table_name: str
    event_date: date
    status: DayStatus = DayStatus.OPEN
    complete_at: datetime | None = None
    watermark: datetime | None = None
    restated: int = 0
    restated_at: datetime | None = None
    changes: int = 0
    impressions: int = 0
    clicks: int = 0
    cost_micros: int = 0
    audited_at: datetime | None = None
    frozen_at: datetime | None = None
    repair: int = 0
    version: int = 0
    updated_at: datetime | None = None
    zone: str = UTC_ZONE

    @property
    def key(self) -> tuple[str, date]:
        """Its key."""
        return self.table_name, self.event_date

    @property
    def start(self) -> datetime:
        """The first instant of the day."""
        return midnight(self.event_date, self.zone)

    @property
    def end(self) -> datetime:
        """The first instant after the day."""
        return midnight(self.event_date + _DAY, self.zone)

    @property
    def is_relied_on(self) -> bool:
        """Whether people may have acted on its status: one that was frozen at first sight was never waited for."""
        was_frozen_later = self.frozen_at is not None and self.frozen_at != self.complete_at
        return self.restated > 0 or self.audited_at is not None or was_frozen_later

    @property
    def words(self) -> str:
        """The status for people, with how often the day was restated."""
        return f"{self.status.value} {self.restated}" if self.status is DayStatus.RESTATED else self.status.value


class DaysSeen(BaseModel):
    """The input seen when ``gold/days`` was last updated, so that the next update reads only what is new.

    Losing it costs one look at all of it. ``dates`` are those of the events in silver up to ``silver_version``,
    ``first`` and ``last`` their ends; an earlier version wrote these only. ``restatements_version`` is the version of
    ``gold/restatements`` that was counted, -1 before there was one.
    """

    model_config = ConfigDict(frozen=True)

    silver_version: int
    first: date
    last: date
    dates: tuple[date, ...] = ()
    restatements_version: int


def read_days(
    lake: Lake, *, since: date | None = None, until: date | None = None, zone: str | None = None
) -> list[Day]:
    """The days of ``lake`` from ``since`` to ``until``, both included, ordered by table and date.

    Empty before the first update. With a ``zone``, only those that were made in it.

    Raises:
        LakeError: the table cannot be read.
    """
    found = [_day(row) for row in read_small(lake, DAYS)]
    own = [day for day in found if zone in (None, day.zone)]
    return sorted(_within(own, since, until), key=lambda day: day.key)


def _day(row: Mapping[str, Any]) -> Day:
    # An earlier adloom knew no zone but UTC.
    return Day(**{**row, "status": DayStatus(row["status"]), "zone": row.get("zone") or UTC_ZONE})


def _within(days: Iterable[Day], since: date | None, until: date | None) -> list[Day]:
    chosen = (day for day in days if since is None or day.event_date >= since)
    return [day for day in chosen if until is None or day.event_date <= until]
