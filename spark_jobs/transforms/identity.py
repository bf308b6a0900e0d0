"""When two records are the same event: the one definition that streams, corrections, marks and credit share.

Two records are the same event if their type and their id are equal and their times lie no further apart than
``deduplicate.watermark``; with ``forever``, at any distance. Further apart, the id was used again, for another event::

    deduplicate.watermark = 3h, all of one id     08:00     10:30     11:00     14:30
                                                  first     copy      copy      another event
                                                    ├────────── 3h ─────┤

Of the copies of an event the first to arrive counts. A record is a copy only of one that counts: 14:30 is within 3 h of
no record that does, whatever lies between.
"""

from datetime import timedelta

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_jobs.transforms.open_rows import KEY


def are_same(left: str, right: str, delay: timedelta | None) -> Column:
    """Whether the records with the aliases ``left`` and ``right`` are the same event.

    Args:
        left: an alias; its rows have ``event_type``, ``event_id`` and ``event_time``.
        right: another one, with the same columns.
        delay: ``deduplicate.watermark``; None: ids are remembered for ever.
    """
    has_key = F.lit(True)
    for name in KEY:
        has_key &= F.col(f"{left}.{name}") == F.col(f"{right}.{name}")
    return has_key & are_near(F.col(f"{left}.event_time"), F.col(f"{right}.event_time"), delay)


def are_near(left: Column, right: Column, delay: timedelta | None) -> Column:
    """Whether two times are near enough for two records of one id to be the same event: both ends included."""
    if delay is None:
        return F.lit(True)
    apart = F.abs(F.unix_micros(left) - F.unix_micros(right))
    return apart <= F.lit(delay // timedelta(microseconds=1))
