"""The conversions that credit is computed from: due ones, each event once, and copies that no longer count.

::

    silver conversions ─┬─ with a late copy that was received first ──▶ replaced: its rows in the tables must go
                        └─ without ──┐
    silver/late_events ──────────────┴─▶ counted

:mod:`spark_jobs.queries.identity` defines when two records are the same event. Several conversions may have one id, so
a row of the tables of credit belongs to the conversion that has both its id and its time.
"""

from datetime import UTC, date, datetime, time, timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.config.durations import time_of_us
from spark_jobs.contract.events import CONVERSION, KEY
from spark_jobs.contract.tables import LATE_EVENTS, SILVER_EVENTS
from spark_jobs.credit.plan import CreditHorizon
from spark_jobs.places import REPAIR
from spark_jobs.queries.correction import GROUP
from spark_jobs.queries.facts import IS_EXPIRED
from spark_jobs.queries.identity import delay_of, is_replaced, not_replaced
from spark_jobs.restatements.late_events import CAUSE
from spark_jobs.spark.columns import dates_within
from spark_jobs.spark.open_lake import OpenLake

_FIRST, _LAST = date(1970, 1, 1), date(9999, 12, 31)
"""The earliest and the latest date that an event can have."""
LATE_TIME = "late_time"
"""Column: the ``event_time`` of the late copy that replaces a conversion."""


def group_of(event_time: str = "event_time") -> Column:
    """The group in which the rows of a conversion are compared and changed: its id and its time."""
    return F.concat("event_id", F.lit("@"), F.unix_micros(event_time).cast("string")).alias(GROUP)


class DueConversions:
    """The conversions of a lake that are due by a reach.

    Args:
        lake: the lake.
        reach: how far the tables have come.
    """

    def __init__(self, lake: OpenLake, reach: CreditHorizon) -> None:
        self._lake, self._reach = lake, reach
        self._delay = delay_of(lake.settings.deduplicate)

    def counted(self, first: date = _FIRST, last: date = _LAST) -> DataFrame:
        """The due conversions on the dates from ``first`` to ``last``, each event once.

        Returns:
            The columns of silver, ``cause`` and ``repair``, null unless they came late.
        """
        none, on_date = _not_late(), F.col("event_date").between(F.lit(first), F.lit(last))
        silver, late = self._silver().where(on_date), self.late(first, last)
        others = not_replaced(silver, late, self._delay)
        own = late.where(on_date)
        columns = [name for name in (*silver.columns, *none) if name in own.columns]
        return others.withColumns(none).unionByName(own.select(*columns), allowMissingColumns=True)

    def late(self, first: date = _FIRST, last: date = _LAST) -> DataFrame:
        """The conversions that were too late for silver: at least all that may be copies of one in the given dates."""
        if not self._lake.has(LATE_EVENTS):
            return self._silver().where(F.lit(False)).withColumns(_not_late())
        # Events that a repair applies meanwhile are for the next run.
        is_there = ~F.col(IS_EXPIRED) & (F.col(REPAIR) <= self._reach.repair)
        rows = self._lake.read(LATE_EVENTS).where(self._is_due() & is_there)
        if self._delay is None:
            return rows
        if first > _FIRST:
            rows = rows.where(F.col("event_time") >= F.lit(_midnight(first) - self._delay))
        if last < _LAST:
            rows = rows.where(F.col("event_time") <= F.lit(_midnight(last) + timedelta(days=1) + self._delay))
        return rows

    def replaced(self, late: DataFrame, *names: str) -> DataFrame:
        """The conversions of silver that no longer count, because one of ``late`` is the same event.

        Args:
            late: rows of :meth:`late`.
            names: further columns of these rows.

        Returns:
            The columns of silver; ``names``, ``late_time`` and ``group`` of the late one.
        """
        silver, dates = self._silver(), dates_within(late, self._delay or timedelta())
        if self._delay is not None or not dates:
            silver = silver.where(F.col("event_date").isin(dates))
        own = late.select(*KEY, "event_time", "ingest_time", *names)
        pairs = silver.alias("kept").join(own.alias("late"), on=is_replaced(self._delay), how="inner")
        found = pairs.select("kept.*", F.col("late.event_time").alias(LATE_TIME), *[f"late.{name}" for name in names])
        return found.withColumn(GROUP, group_of(LATE_TIME))

    def _silver(self) -> DataFrame:
        return self._lake.read(SILVER_EVENTS, version=self._reach.silver_version).where(self._is_due())

    def _is_due(self) -> Column:
        return (F.col("event_type") == CONVERSION) & (F.col("event_time") <= F.lit(self._reach.until))


def ends_of(rows: DataFrame, time: str) -> tuple[datetime, datetime] | None:
    """The least and the largest ``time``; None: no rows."""
    ((first, last),) = rows.agg(F.unix_micros(F.min(time)), F.unix_micros(F.max(time))).collect()
    return None if first is None else (time_of_us(first), time_of_us(last))


def _not_late() -> dict[str, Column]:
    return {CAUSE: F.lit(None).cast("string"), REPAIR: F.lit(None).cast("bigint")}


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
