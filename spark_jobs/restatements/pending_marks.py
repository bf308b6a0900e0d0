"""The marks that gold does not have yet.

A marking commits marks first and changes gold afterwards. So in between, and for rows of gold that are still open,
changes of marks are pending.
"""

from collections.abc import Callable, Sequence
from datetime import date

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.config.durations import time_of_us
from spark_jobs.contract.events import CLICK, IMPRESSION
from spark_jobs.contract.tables import MARKS
from spark_jobs.lake.batches import note_in_table
from spark_jobs.lake.layout import Lake
from spark_jobs.places import MARKS_WRITER
from spark_jobs.queries.kept_columns import with_columns
from spark_jobs.restatements.late_events import CAUSE
from spark_jobs.restatements.pending import IS_PENDING
from spark_jobs.restatements.plan import Cause, PlanKind, events_key
from spark_jobs.restatements.plans import LastRepair, last_plan
from spark_jobs.spark.columns import dates_of
from spark_jobs.spark.open_lake import OpenLake
from spark_jobs.traffic_rules.evaluate import active_marks
from spark_jobs.traffic_rules.kinds.common import EVENT, is_of, micros_literal
from spark_jobs.traffic_rules.reached import Reached
from spark_jobs.traffic_rules.valid_columns import rules_by_event

_BEGIN_US = 0
Events = Callable[[Sequence[date]], DataFrame]
"""Returns the events with an ``event_date`` among the given ones, each once, with the columns of silver."""


class PendingMarks:
    """The marks of a lake, at one version of ``silver/marks``.

    Args:
        lake: the lake.
        version: of the table.
    """

    def __init__(self, lake: OpenLake, version: int) -> None:
        self._lake, self._version = lake, version
        self.before: LastRepair | None = last_plan(lake, PlanKind.MARKS)
        """The last plan that brought marks to gold; None: no plan has."""

    @classmethod
    def of(cls, lake: OpenLake) -> "PendingMarks | None":
        """The current marks of ``lake``; None: nothing was ever marked."""
        version = lake.newest_commit(MARKS.path)
        return None if version is None else cls(lake, version)

    @property
    def marked_at_us(self) -> int:
        """The time of the newest rows (microseconds since 1970)."""
        return marked_at_us(self._lake, self._version)

    def has_news(self, tables: Sequence[str]) -> bool:
        """Whether anything can be pending for ``tables``."""
        before = self.before
        if not tables:
            return False
        if before is None or before.failed or before.plan.pending:
            return True
        return self.marked_at_us > min(map(self._since_us, tables))

    def of_dates(self, dates: Sequence[date]) -> DataFrame:
        """The marked events of ``dates``: see :func:`spark_jobs.traffic_rules.valid_columns.rules_by_event`."""
        return rules_by_event(active_marks(self._rows().where(F.col("event_date").isin(list(dates)))))

    def outstanding(self, table: str, events: Events, dates: Sequence[date] | None = None) -> DataFrame:
        """The impressions and clicks whose changed marks are not in ``table`` yet.

        Args:
            table: name of a table of gold.
            events: all events.
            dates: only events of these dates; None: of all.

        Returns:
            The columns of silver, ``cause`` and ``is_counted``, which is true.
        """
        changed = self._rows().where(
            (F.col("marked_at") > micros_literal(time_of_us(self._since_us(table)))) & _is_counted()
        )
        if dates is not None:
            changed = changed.where(F.col("event_date").isin(list(dates)))
        changed = changed.select(*EVENT, "event_date").distinct().localCheckpoint()
        found = events(dates_of(changed)).join(changed.select(*EVENT), on=list(EVENT), how="left_semi")
        if (waiting := self._waiting(table)) is not None:
            if dates is not None:
                waiting = waiting.where(F.col("event_date").isin(list(dates)))
            # Events that wait may be older than a kept column.
            found = found.unionByName(with_columns(waiting, dict(found.dtypes)).select(*found.columns))
        labels = {CAUSE: F.lit(Cause.INVALID_TRAFFIC.value), "is_counted": F.lit(True)}
        return found.dropDuplicates(list(EVENT)).withColumns(labels).localCheckpoint()

    def _rows(self) -> DataFrame:
        return self._lake.read(MARKS, version=self._version)

    def _since_us(self, table: str) -> int:
        """The time up to which ``table`` has marks; for a table that did not exist then, the earliest time."""
        before = self.before
        return before.plan.marked_at_us if before and table in before.plan.tables else _BEGIN_US

    def _waiting(self, table: str) -> DataFrame | None:
        before = self.before
        if before is None or table not in before.plan.tables or not before.plan.tables[table].events:
            return None
        earlier = self._lake.read_parquet(events_key(before.plan.folder, table))
        return earlier if table in before.failed else earlier.where(IS_PENDING)


def marked_at_us(lake: Lake, version: int) -> int:
    """The time of the newest rows of ``silver/marks`` in ``version`` (microseconds since 1970); 0: unknown."""
    own = note_in_table(lake, MARKS, MARKS_WRITER, until=version)
    return _BEGIN_US if own is None else Reached.model_validate(own.reached[0]).marked_at_us


def _is_counted() -> Column:
    return is_of(IMPRESSION, CLICK)
