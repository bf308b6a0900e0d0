"""Compares the rows of a window as they are with what they should be according to bronze."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.config.durations import Window
from spark_jobs.contract.events import HEARTBEAT, KEY
from spark_jobs.contract.tables import BRONZE_EVENTS, SILVER_EVENTS
from spark_jobs.queries.arrivals import read_up_to
from spark_jobs.queries.correction import DUE, GROUP, AffectedRows, Correction, CorrectionInput
from spark_jobs.queries.facts import BronzeTruth, events_of
from spark_jobs.queries.identity import delay_of
from spark_jobs.queries.initial_state import initial_events
from spark_jobs.restatements.compare import (
    COPIES,
    causes_of,
    changes,
    checkpointed,
    is_older,
    open_groups,
    unexpected_rows,
    unexplained,
)
from spark_jobs.restatements.late_events import late_in_silver
from spark_jobs.restatements.pending import PendingLateEvents, TableToCorrect
from spark_jobs.restatements.pending_marks import PendingMarks
from spark_jobs.restatements.plans import last_repair
from spark_jobs.spark.columns import FEW_ROWS
from spark_jobs.spark.open_lake import OpenLake

_DAY = timedelta(days=1)
_IS_OPEN = "is_open"
_EVENT = ("cause", "event_type", "event_id", "received_at")


@dataclass(frozen=True)
class Compared:
    """A table compared with its recomputation.

    Attributes:
        one: the table.
        columns: of the table.
        actual: how many rows of the window the table has, without those that the live query may still change.
        still_open: how many rows of the window the live query may still change.
        changed: the changes of all groups that differ in the window, from
            :func:`spark_jobs.restatements.compare.changes`; the cause is ``replay`` where nothing explains one.
    """

    one: TableToCorrect
    columns: Sequence[str]
    actual: int
    still_open: int
    changed: DataFrame


class Comparing:
    """Compares tables with bronze, in one window.

    Args:
        lake: the lake. No repair is under way.
        window: rows with event times in it are compared.
        at: the time of the replay.
    """

    def __init__(self, lake: OpenLake, window: Window, at: datetime) -> None:
        self._lake, self._window, self._at = lake, window, at
        self._outstanding = PendingLateEvents(lake, last_repair(lake), lambda rows: rows.persist())
        bronze = read_up_to(lake, BRONZE_EVENTS, self._outstanding.bronze_version)
        self._silver = read_up_to(lake, SILVER_EVENTS, self._outstanding.silver_version)
        self._marked = PendingMarks.of(lake)
        self._delay = delay_of(lake.settings.deduplicate)
        self._truth = BronzeTruth(bronze, self._silver, self._outstanding.known, self._delay)
        self._dates = _dates(window.begin - _DAY, window.end + _DAY)

    def forget(self) -> None:
        """Frees the cached rows."""
        self._truth.forget()
        if self._outstanding.known is not None:
            self._outstanding.known.unpersist()

    def compare(self, one: TableToCorrect) -> Compared:
        """Compares a table."""
        live = self._lake.read(one.query.writes, version=one.version)
        initial = initial_events(self._lake, one.query)
        late = self._late(one)
        events = self._events(one, initial, late)
        is_small = events.count() <= FEW_ROWS
        # A chain may be of any length, but each step reads one more date.
        scene = CorrectionInput(
            self._lake.settings,
            one.watermark,
            self._all(initial),
            live,
            date(1970, 1, 2),
            date(9999, 12, 30),
            is_small,
            self._marked.of_dates if self._marked else None,
        )
        touched = checkpointed(one.correction.recompute(events, scene))
        return self._compared(one, scene, touched, late)

    def _compared(
        self, one: TableToCorrect, scene: CorrectionInput, touched: AffectedRows, late: DataFrame | None
    ) -> Compared:
        columns, live = scene.live.columns, self._rows_of_window(one, scene.live)
        is_in = self._is_in(one.correction)
        expected, actual = _with_closing(one.correction, scene, touched)
        still_open = expected.where(F.col(_IS_OPEN) & is_in).localCheckpoint()
        settled = _there_already(still_open, actual, one, columns)
        now = F.lit(one.watermark or self._at)
        frozen = is_older(F.expr(one.correction.time), now, self._lake.settings.repair.freeze_after)
        closed = [rows.where(~F.col(_IS_OPEN)) for rows in (expected, actual)]
        found = changes(closed[0], closed[1], columns, self._causes(touched, late), frozen).localCheckpoint()
        strange = unexpected_rows(live, touched.actual, columns).localCheckpoint()
        more = unexplained(strange, found, one.correction.key(columns), frozen)
        return Compared(
            one,
            columns,
            actual=closed[1].where(is_in).count() + _copies(strange) + settled,
            still_open=still_open.count() - settled,
            changed=_touching(found.unionByName(more), is_in, columns).localCheckpoint(),
        )

    def _causes(self, touched: AffectedRows, late: DataFrame | None) -> DataFrame:
        """For each group, the first pending event that touches it, or that nothing explains it."""
        groups = touched.scope.select(GROUP).distinct()
        none = {name: F.lit(None).cast("string") for name in _EVENT} | {"received_at": F.lit(None).cast("timestamp")}
        found = groups.withColumns(none) if late is None else groups.join(causes_of(touched, late), GROUP, "left")
        return found.withColumn("cause", F.coalesce("cause", F.lit("replay")))

    def _events(self, one: TableToCorrect, initial: DataFrame | None, late: DataFrame | None) -> DataFrame:
        """The events behind the rows of the window, as if all were late; and copies that do not count."""
        begin = self._window.begin - one.correction.reach(self._lake.settings)
        dates = _dates(begin, self._window.end)
        near = (F.col("event_time") >= F.lit(begin)) & (F.col("event_time") < F.lit(self._window.end))
        # The dates around are read too, so all are computed together.
        self._truth.of_dates(sorted({*dates, *self._dates}))
        events = self._all(initial)(dates).where(near).withColumn("is_counted", F.lit(True))
        silver = self._silver.where(F.col("event_date").isin(dates) & near & (F.col("event_type") != HEARTBEAT))
        hashed = F.xxhash64(*silver.columns)
        right = events.select(*KEY, hashed.alias("hash"))
        wrong = silver.withColumn("hash", hashed).join(right, on=[*KEY, "hash"], how="left_anti").drop("hash")
        parts = [wrong.withColumn("is_counted", F.lit(False))]
        if late is not None:
            parts.append(late.drop("cause"))
        for part in parts:
            events = events.unionByName(part.select(*events.columns))
        return events.dropDuplicates([*KEY, "event_time", "is_counted"]).localCheckpoint()

    def _late(self, one: TableToCorrect) -> DataFrame | None:
        """The events near the window that gold lacks, or whose marks it lacks, and that are still to be applied."""
        dates = _dates(self._window.begin - self._far(), self._window.end + self._far())
        late = self._late_events(one, dates)
        if self._marked is None or not one.correction.net:
            return late
        there = events_of(self._silver, self._outstanding.late, None, self._delay)
        marked = self._marked.outstanding(one.query.writes.name, there, dates)
        return marked if late is None else late.unionByName(marked, allowMissingColumns=True)

    def _late_events(self, one: TableToCorrect, dates: Sequence[date]) -> DataFrame | None:
        """The events of ``dates`` that were late for a table, or will be, and that no repair has applied yet."""
        silver = read_up_to(self._lake, SILVER_EVENTS, one.silver_version)
        late = self._outstanding.events(one, silver, dates)
        if one.silver_version == self._outstanding.silver_version:
            return late
        # Events that the query has not read yet are open, or will be late for it.
        on_dates = F.col("event_date").isin(dates)
        unread = self._silver.where(on_dates).join(silver.where(on_dates), on=[*KEY, "ingest_time"], how="left_anti")
        more = late_in_silver(unread).withColumn("is_counted", F.lit(True)).localCheckpoint()
        return more if late is None else late.unionByName(more)

    def _far(self) -> timedelta:
        """How far an event may lie from a row that it changes, except in chains, which may be of any length."""
        settings = self._lake.settings
        average = settings.moving_average
        pairs = settings.attribute.window + settings.campaign_stats.window
        return max(_DAY, pairs, (average.size + 2) * average.timeout)

    def _all(self, initial: DataFrame | None) -> Callable[[Sequence[date]], DataFrame]:
        def of_dates(dates: Sequence[date]) -> DataFrame:
            events = self._truth.of_dates(dates)
            if initial is None:
                return events
            began = initial.where(F.col("event_date").isin(list(dates)))
            return events.unionByName(began.select(*[name for name in events.columns if name in began.columns]), True)

        return of_dates

    def _is_in(self, correction: Correction) -> Column:
        time = F.expr(correction.time)
        return (time >= F.lit(self._window.begin)) & (time < F.lit(self._window.end))

    def _rows_of_window(self, one: TableToCorrect, live: DataFrame) -> DataFrame:
        rows = live.where(self._is_in(one.correction))
        if "event_date" in one.query.writes.partition_by:
            rows = rows.where(F.col("event_date").isin(_dates(self._window.begin, self._window.end)))
        return rows


def _with_closing(correction: Correction, scene: CorrectionInput, touched: AffectedRows) -> tuple[DataFrame, DataFrame]:
    """The expected and the actual rows, with ``due``, when they close, and ``is_open``."""
    sides = touched.expected.drop(DUE), touched.actual
    if correction.row_due is not None:
        due = correction.row_due(scene.settings)
        timed = [rows.withColumns({DUE: due, _IS_OPEN: ~scene.is_closed(due)}) for rows in sides]
    else:
        groups = open_groups(touched, scene).withColumn(_IS_OPEN, F.lit(True))
        joined = [rows.join(groups, on=GROUP, how="left") for rows in sides]
        timed = [rows.withColumn(_IS_OPEN, F.coalesce(_IS_OPEN, F.lit(False))) for rows in joined]
    return timed[0], timed[1]


def _there_already(still_open: DataFrame, actual: DataFrame, one: TableToCorrect, columns: Sequence[str]) -> int:
    """How many open rows were emitted in the last millisecond, so that only rounding makes them open."""
    if one.watermark is None:
        return 0
    passed = still_open.where(F.col(DUE) <= F.lit(one.watermark)).select(F.struct(*columns).alias("due_row"))
    there = actual.where(_IS_OPEN).select(F.struct(*columns).alias("row")).distinct()
    return passed.join(there, on=F.col("due_row").eqNullSafe(F.col("row")), how="left_semi").count()


def _touching(found: DataFrame, is_in: Column, columns: Sequence[str]) -> DataFrame:
    """The changes of groups that have one in the window, whole."""
    placed = found.select("*", *[F.col(f"row.{name}").alias(name) for name in columns]).where(is_in)
    return found.join(placed.select(GROUP).distinct(), on=GROUP, how="left_semi")


def _copies(rows: DataFrame) -> int:
    ((count,),) = rows.agg(F.sum(COPIES)).collect()
    return int(count or 0)


def _dates(begin: datetime, end: datetime) -> list[date]:
    """The dates from ``begin`` to just before ``end``."""
    first, last = (time.astimezone(UTC).date() for time in (begin, end - timedelta(microseconds=1)))
    return [first + timedelta(days=step) for step in range((last - first).days + 1)]
