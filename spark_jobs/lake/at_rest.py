"""The rows that a table has already, as a query that begins with them reads them: in steps of event time."""

from collections import Counter
from datetime import date, timedelta
from typing import Final

from spark_jobs.config.durations import EPOCH, microseconds
from spark_jobs.contract.tables import Table
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.table_files import live_files

_DATE: Final = "event_date"
_DAY: Final = timedelta(days=1)


def time_steps(lake: Lake, table: Table, version: int, rows_at_once: int) -> list[int]:
    """Event times that divide the rows of ``version`` into parts of at most about ``rows_at_once`` rows.

    The log says how many rows each day has; within a day they are taken to be spread evenly.

    Returns:
        Microseconds since 1970, ascending; the last part comes after the last of them. Empty for a table without
        partitions by date.

    Raises:
        LakeError: the log has a gap.
    """
    rows = Counter[date]()
    for file in live_files(lake, table, version) if _DATE in table.partition_by else ():
        if text := file.partition[_DATE]:
            rows[date.fromisoformat(text)] += file.rows or 0
    found: list[int] = []
    taken = 0
    for day, count in sorted(rows.items()):
        begin = day - EPOCH.date()
        if taken and taken + count > rows_at_once:
            found.append(microseconds(begin) - 1)
            taken = 0
        parts = max(1, -(-count // rows_at_once))
        found += [microseconds(begin + _DAY * part / parts) - 1 for part in range(1, parts)]
        taken += count // parts
    return found


def dates_there(lake: Lake, table: Table, version: int) -> tuple[date, date] | None:
    """The first and the last date with rows in ``version``, as the log has them; None: there are no rows."""
    named = {file.partition.get(_DATE) for file in live_files(lake, table, version) if file.rows != 0}
    days = [date.fromisoformat(day) for day in named if day]
    return (min(days), max(days)) if days else None
