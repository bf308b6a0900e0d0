"""Counts rows over time, for :mod:`expectations.timelines`."""

from datetime import timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from expectations.intervals import OFFSET
from expectations.timelines import Bar
from spark_jobs.config.durations import EPOCH, microseconds


def count_bars(rows: DataFrame, time: str, row: str, kind: str, interval: timedelta) -> tuple[Bar, ...]:
    """How many of ``rows`` there are in each interval of the column ``time``, in order of time.

    Args:
        rows: with the columns named by the others; ``time`` is never null.
        time: a timestamp.
        row: see :class:`Bar`; may be null.
        kind: see :class:`Bar`.
        interval: the length of a bar.
    """
    number = F.expr(f"(unix_micros({time}) - {microseconds(OFFSET)}) div {microseconds(interval)}").alias("number")
    found = rows.groupBy(row, kind, number).count().collect()
    bars = (Bar(one[row], one[kind], EPOCH + OFFSET + one["number"] * interval, one["count"]) for one in found)
    return tuple(sorted(bars, key=lambda bar: (bar.start, bar.row or "", bar.kind)))
