"""The date of a row in the time zone of days."""

from spark_jobs.config.durations import UTC_ZONE


def day_of(zone: str) -> str:
    """SQL that creates the macro ``day_of(date, time)``: the date of ``time`` in ``zone``; ``date`` is that in UTC.

    In UTC it is ``date`` itself, by which DuckDB skips the files of other days.
    """
    local = f"CAST(timezone('{zone}', time) AS DATE)"
    return f"CREATE OR REPLACE MACRO day_of(date, time) AS {'date' if zone == UTC_ZONE else local}"
