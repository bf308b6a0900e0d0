"""``gold/days`` as rows, read without Spark."""

from collections.abc import Iterable
from datetime import date

from spark_jobs.contracts.days import Day, DayStatus
from spark_jobs.contracts.tables import DAYS
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.small_tables import read_small


def read_days(lake: Lake, *, since: date | None = None, until: date | None = None) -> list[Day]:
    """The days of ``lake`` from ``since`` to ``until``, both included, ordered by table and date.

    There are none before the first update.

    Raises:
        LakeError: the table cannot be read.
    """
    found = [Day(**{**row, "status": DayStatus(row["status"])}) for row in read_small(lake, DAYS)]
    return sorted(_within(found, since, until), key=lambda day: day.key)


def _within(days: Iterable[Day], since: date | None, until: date | None) -> list[Day]:
    chosen = (day for day in days if since is None or day.event_date >= since)
    return [day for day in chosen if until is None or day.event_date <= until]
