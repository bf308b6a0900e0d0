"""The definition of when two records are the same event, shared by streams, corrections, marks, credit and ledger.

Two records are the same event if their type and their id are equal and their times lie no further apart than
``deduplicate.watermark``; with ``forever``, at any distance. Further apart, the id was used again, for another event::

    deduplicate.watermark = 3h, all of one id     08:00     10:30     11:00     14:30
                                                  first     copy      copy      another event
                                                    ├────────── 3h ─────┤

Of the copies of an event the first to arrive counts. A record is a copy only of one that counts: 14:30 is not within 3
h of one, whatever lies between. The order of copies in one block of a file is not known afterwards: there the one that
silver has counts.
"""

from collections.abc import Sequence
from datetime import date, timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.config.choices import DeduplicateMode
from spark_jobs.config.sections import DeduplicateSettings
from spark_jobs.contract.events import KEY
from spark_jobs.traffic_rules.kinds.common import EVENT

COPY = (*EVENT, "ingest_time")
"""The columns that identify a copy of an event."""
IS_KEPT = "is_kept"
_DAY = timedelta(days=1)


def delay_of(settings: DeduplicateSettings) -> timedelta | None:
    """The longest time between two records of one event; None: any."""
    return None if settings.mode is DeduplicateMode.FOREVER else settings.watermark


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
    """Whether two times are at most ``delay`` apart, so that two records of one id are the same event."""
    if delay is None:
        return F.lit(True)
    apart = F.abs(F.unix_micros(left) - F.unix_micros(right))
    return apart <= F.lit(delay // timedelta(microseconds=1))


def replaced_in(rows: DataFrame, late: DataFrame, delay: timedelta | None) -> DataFrame:
    """The ``rows``, all of silver, that are copies of an event of ``late`` that was received first."""
    return _joined(rows, late, delay, "left_semi")


def not_replaced(rows: DataFrame, late: DataFrame, delay: timedelta | None) -> DataFrame:
    """``rows``, all of silver, without those that :func:`replaced_in` gives."""
    return _joined(rows, late, delay, "left_anti")


def _joined(rows: DataFrame, late: DataFrame, delay: timedelta | None, how: str) -> DataFrame:
    return rows.alias("kept").join(late.select(*COPY).alias("late"), on=is_replaced(delay), how=how)


def is_replaced(delay: timedelta | None) -> Column:
    """Whether a row of silver (alias ``kept``) is a copy of a late event (alias ``late``), which was received first."""
    # Of two copies in one batch, the late one replaces silver's only if it was the first of them.
    return are_same("late", "kept", delay) & (F.col("late.ingest_time") <= F.col("kept.ingest_time"))


def dates_around(dates: Sequence[date], reach: timedelta) -> list[date]:
    """``dates`` and the dates within ``reach`` of them, ascending."""
    days = -(-reach // _DAY)
    return sorted({day + timedelta(days=step) for day in dates for step in range(-days, days + 1)})


def with_kept(records: DataFrame, kept: DataFrame) -> DataFrame:
    """``records`` and ``is_kept``: whether the copy is one of ``kept``, rows with the columns :data:`COPY`."""
    known = kept.select(*COPY).distinct().withColumn(IS_KEPT, F.lit(True))
    return records.join(known, on=list(COPY), how="left").withColumn(IS_KEPT, F.coalesce(IS_KEPT, F.lit(False)))


def first_of_each(records: DataFrame, delay: timedelta | None) -> DataFrame:
    """The first copy of each event, in the order of arrival.

    Args:
        records: with ``event_type``, ``event_id``, ``event_time``, ``ingest_time`` and ``source``; those with
            ``is_known`` count, whatever came before them. Of records from one place those with ``is_kept`` come first.
        delay: ``deduplicate.watermark``; None: ids are remembered for ever.

    Returns:
        The columns of ``records`` without ``source``, ``is_known`` and ``is_kept``.
    """
    names = [name for name in records.columns if name not in {"source", "is_known", IS_KEPT}]
    is_known = F.col("is_known") if "is_known" in records.columns else F.lit(False)
    is_other = ~F.col(IS_KEPT) if IS_KEPT in records.columns else F.lit(False)
    one = F.struct(
        "ingest_time",
        *_place(),
        is_other.alias("is_other"),
        "event_time",
        is_known.alias("is_known"),
        F.struct(*names).alias("record"),
    )
    of_id = records.groupBy(*KEY).agg(F.array_sort(F.collect_list(one)).alias("copies"))

    def with_next(found: Column, copy: Column) -> Column:
        is_copy = F.exists(found, lambda first: are_near(first["event_time"], copy["event_time"], delay))
        return F.when(is_copy & ~copy["is_known"], found).otherwise(F.concat(found, F.array(copy)))

    several = F.aggregate("copies", F.slice("copies", 1, 0), with_next)
    found = F.when(F.size("copies") == 1, F.col("copies")).otherwise(several)
    return of_id.select(F.explode(found).alias("first")).select("first.record.*")


def _place() -> tuple[Column, Column]:
    """The place of a record according to ``source``, to sort by: its partition or file, and its offset as a number."""
    parts = r"^(.*)(?:/|#bytes=)(\d+)(?:-\d+)?$"
    part, offset = F.regexp_extract("source", parts, 1), F.regexp_extract("source", parts, 2).try_cast("bigint")
    return part.alias("part"), offset.alias("offset")
