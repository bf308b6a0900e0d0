"""Gross and net credit: two variants of one computation, each with tables of its own and with the events that count.

::

    conversions, attributions ──────────────────────▶ gold/paths, gold/credits, gold/left_out
             │
             └── without what silver/marks says ────▶ gold/net_paths, gold/net_credits

Marks never change gross.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.config.durations import time_of_us
from spark_jobs.contract.tables import CREDITS, LEFT_OUT, MARKS, NET_CREDITS, NET_PATHS, PATHS, Table
from spark_jobs.credit.selection import why
from spark_jobs.restatements.pending_marks import marked_at_us
from spark_jobs.restatements.plan import Cause
from spark_jobs.spark.columns import dates_of
from spark_jobs.spark.open_lake import OpenLake
from spark_jobs.traffic_rules.evaluate import MARK, marked_events
from spark_jobs.traffic_rules.kinds.common import EVENT, micros_literal
from spark_jobs.traffic_rules.valid_columns import unmarked_attributions, unmarked_events

Counted = Callable[[DataFrame, date, date], DataFrame]
"""Returns the rows that count, of those with an ``event_date`` from the first date to the last."""


@dataclass(frozen=True)
class GrossOrNet:
    """A variant of credit.

    Attributes:
        paths: its table of paths.
        credits: its table of credits.
        conversions: which conversions count, of rows with the columns of silver.
        attributions: the parts of attributions that count.
        left_out: its table of value that is left out; None: it has none.
    """

    paths: Table
    credits: Table
    conversions: Counted
    attributions: Counted
    left_out: Table | None = None


def _all(rows: DataFrame, _first: date, _last: date) -> DataFrame:
    return rows


GROSS = GrossOrNet(PATHS, CREDITS, _all, _all, LEFT_OUT)


class NetView:
    """The marks of a lake in one version of their table.

    Args:
        lake: the lake.
        version: of ``silver/marks``.
    """

    def __init__(self, lake: OpenLake, version: int) -> None:
        self._lake, self._version = lake, version

    @property
    def net(self) -> GrossOrNet:
        """Credit without marked events."""
        return GrossOrNet(
            NET_PATHS,
            NET_CREDITS,
            lambda rows, first, last: unmarked_events(rows, self._on(first, last)),
            lambda rows, first, last: unmarked_attributions(rows, self._on(first, last)),
        )

    def changed(self, since: int) -> DataFrame | None:
        """The events that are marked now and were not in version ``since``, or the reverse.

        None: the table has no newer version.

        Returns:
            ``event_type``, ``event_id``, ``event_time``, ``event_date`` and ``why``; each event once.
        """
        if since >= self._version:
            return None
        since_us = marked_at_us(self._lake, since)
        added = self._rows().where(F.col("marked_at") > micros_literal(time_of_us(since_us))).localCheckpoint()
        decided = added.groupBy(*EVENT, "event_date").agg(F.min("marked_at").alias("decided"))
        reason = why(F.lit(Cause.INVALID_TRAFFIC.value), F.col("decided"), F.col("event_type"), F.col("event_id"))
        events = decided.select(*EVENT, "event_date", reason)
        if since_us:
            # A second rule changes nothing for an event that is already marked.
            events = events.join(self._differing(added), on=list(EVENT), how="left_semi")
        return events.localCheckpoint()

    def _differing(self, added: DataFrame) -> DataFrame:
        """Events that are marked with the rows in ``added`` and not without them, or the reverse."""
        of_dates = self._rows().where(F.col("event_date").isin(dates_of(added)))
        near = of_dates.join(added.select(*EVENT).distinct(), on=list(EVENT), how="left_semi")
        row = [*MARK, "marked_at"]
        now, before = (marked_events(rows) for rows in (near, near.join(added.select(*row), on=row, how="left_anti")))
        return now.unionAll(before).groupBy(*EVENT).count().where(F.col("count") == 1)

    def _on(self, first: date, last: date) -> DataFrame:
        """The marked events in a time range."""
        return marked_events(self._rows().where(F.col("event_date").between(F.lit(first), F.lit(last))))

    def _rows(self) -> DataFrame:
        return self._lake.read(MARKS, version=self._version)
