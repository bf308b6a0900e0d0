"""The correction of a table of gold: the rows that late events touch, as they are and as they should be."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.config.durations import ROUNDING
from spark_jobs.config.settings import Settings
from spark_jobs.spark.columns import dates_within

GROUP, DUE = "group", "due"
"""Columns: the group of rows that are compared and changed together; the watermark that closes a row."""


@dataclass(frozen=True)
class CorrectionInput:
    """The input from which a table is recomputed.

    Attributes:
        settings: those of the live query.
        watermark: of its last batch; None: it had none, so everything is open.
        events: returns the events with an ``event_date`` among the given ones: each once, late ones included, with the
            columns of ``silver/events``.
        live: the rows of the table, as the query's last batch left it.
        first_date, last_date: of the existing events.
        is_small: whether late events are few enough to send the rows that they touch to every task.
        marked: returns the events with an ``event_date`` among the given ones that rules mark as invalid traffic, as
            :func:`spark_jobs.traffic_rules.valid_columns.rules_by_event` does; None: nothing was ever marked.
    """

    settings: Settings
    watermark: datetime | None
    events: Callable[[Sequence[date]], DataFrame]
    live: DataFrame
    first_date: date
    last_date: date
    is_small: bool
    marked: Callable[[Sequence[date]], DataFrame] | None = None

    def few(self, rows: DataFrame) -> DataFrame:
        """``rows``, about as many as there are late events, as a side of a join."""
        return F.broadcast(rows) if self.is_small else rows

    def is_closed(self, due: Column) -> Column:
        """Whether the live query has emitted everything that was ``due`` (timestamp) by then."""
        return F.lit(False) if self.watermark is None else due < F.lit(self.watermark - ROUNDING)

    def near(self, rows: DataFrame, reach: timedelta, time: str = "event_time") -> list[date]:
        """The dates within ``reach`` of a ``time`` of ``rows``, ascending, from the first to the last with events."""
        return [day for day in dates_within(rows, reach, time) if self.first_date <= day <= self.last_date]


@dataclass(frozen=True)
class AffectedRows:
    """The rows that late events touch.

    Attributes:
        scope: ``event_type``, ``event_id`` and ``event_time`` of a late event, the ``group`` (string) that it touches,
            ``due`` (timestamp). An event may touch several groups; one that is missing touches none.
        expected: the columns of the table, ``group`` and ``due``: all rows of these groups as they should be.
        actual: the columns of the table and ``group``: all rows of these groups as they are.
    """

    scope: DataFrame
    expected: DataFrame
    actual: DataFrame


Recompute = Callable[[DataFrame, CorrectionInput], AffectedRows]
"""Maps late events (the columns of ``silver/events``, and ``is_counted``: false for a copy in silver that a late event
replaces) to the rows that they touch."""


@dataclass(frozen=True)
class Correction:
    """How a table of gold is corrected.

    Attributes:
        recompute: finds the rows that late events touch.
        key: columns that identify a row for people; two rows may share them.
        time: the event time that a row belongs to, in SQL.
        reach: how long before the time of a row its events may lie.
        row_due: for a row, the watermark that closes it, if rows of a group close one by one; None: together.
        counts: the counts of a row: SQL for ``campaign_id``, ``impressions``, ``clicks`` and ``cost_micros``; empty: it
            counts nothing by campaign.
        net: columns that marks of invalid traffic change; all others are gross.
    """

    recompute: Recompute
    key: Callable[[Sequence[str]], Sequence[str]]
    time: str
    counts: dict[str, str]
    reach: Callable[[Settings], timedelta] = lambda _: timedelta()
    row_due: Callable[[Settings], Column] | None = None
    net: tuple[str, ...] = ()
