"""Brings marks to gold: they change the net columns of rows that are made of marked events.

::

    silver/marks ──marks that changed──▶ their impressions and clicks ──as if they were late──▶ what they touch
                                                                                                     │
                       plan in _repairs/<number>, as a repair's ──▶ tables, gold/restatements: invalid_traffic

**Gross never changes.** A row whose gross differs from its events, because a late event has not been applied yet, waits
for the repair that applies it. A row that the live query may still change waits too.

**Exactly once**, as a repair: see :mod:`spark_jobs.restatements.repair`. Marks are committed first; if a process is
killed in between, the next run finds them, because it looks at all marks since the last plan.
"""

from datetime import UTC, date, datetime
from uuid import uuid4

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.contract.tables import LATE_EVENTS, SILVER_EVENTS
from spark_jobs.queries.arrivals import read_up_to
from spark_jobs.queries.correction import GROUP, AffectedRows, CorrectionInput
from spark_jobs.queries.facts import IS_EXPIRED, events_of, silver_span, span_of
from spark_jobs.queries.identity import delay_of
from spark_jobs.restatements.apply import OnStep, restate
from spark_jobs.restatements.compare import IS_FROZEN, causes_of, changes, checkpointed, is_older, open_groups, sums
from spark_jobs.restatements.pending import IS_PENDING, TableToCorrect, tables_to_correct
from spark_jobs.restatements.pending_marks import PendingMarks
from spark_jobs.restatements.plan import PlanKind, RepairPlan, TablePlan, changes_key, draft_key, events_key
from spark_jobs.restatements.plans import GOLD_PLANS
from spark_jobs.restatements.repair import GOLD
from spark_jobs.spark.columns import FEW_ROWS
from spark_jobs.spark.open_lake import OpenLake
from spark_jobs.traffic_rules.kinds.common import EVENT


def apply_marks_to_gold(lake: OpenLake, *, on_step: OnStep = lambda _line: None) -> RepairPlan | None:
    """Updates the net columns of gold to the marks. Rows that the live queries may still change wait.

    Jobs may be running. A killed repair, replay or plan of marks is completed first.

    Args:
        lake: the lake.
        on_step: called with a line of text at every step.

    Returns:
        What it found and changed; None: nothing has changed since the last run.

    Raises:
        LakeError: see :func:`spark_jobs.restatements.apply.restate`.
        LakeInUseError: a repair or a replay is at work.
    """
    if not _may_have_news(lake):
        return None

    def plan(number: int) -> RepairPlan | None:
        marked, wanted = PendingMarks.of(lake), _wanted(lake)
        if marked is None or not marked.has_news([one.query.writes.name for one in wanted]):
            return None
        return _Planning(lake, number, marked, on_step).plan(wanted)

    return restate(lake, GOLD, plan, on_step=on_step)


def _may_have_news(lake: OpenLake) -> bool:
    if GOLD_PLANS.unfinished(lake):
        return True
    marked = PendingMarks.of(lake)
    return marked is not None and marked.has_news([one.query.writes.name for one in _wanted(lake)])


def _wanted(lake: OpenLake) -> list[TableToCorrect]:
    return [one for one in tables_to_correct(lake) if one.correction.net]


class _Planning:
    def __init__(self, lake: OpenLake, number: int, marked: PendingMarks, on_step: OnStep) -> None:
        self._lake, self._number = lake, number
        self._marked, self._on_step = marked, on_step
        self._draft, self._at = uuid4().hex, datetime.now(UTC)
        self._delay = delay_of(lake.settings.deduplicate)
        self._rows: dict[str, DataFrame] = {}
        """The planned rows, by key."""
        late = lake.read(LATE_EVENTS) if lake.has(LATE_EVENTS) else None
        self._late = None if late is None else late.where(~F.col(IS_EXPIRED)).drop(IS_EXPIRED, "cause", "repair")
        self._silver = lake.read(SILVER_EVENTS, version=lake.newest_commit(SILVER_EVENTS.path))

    def plan(self, wanted: list[TableToCorrect]) -> RepairPlan | None:
        """The plan; None: nothing changes, and no other events wait than before."""
        span = span_of(silver_span(self._lake), self._late)
        tables = {one.query.writes.name: self._part(one, span) for one in wanted} if span else {}
        before, marked_at_us = self._marked.before, self._marked.marked_at_us
        has_changed = any(part.inserts + part.deletes + part.frozen for part in tables.values())
        is_known = before is not None and before.plan.tables.keys() == tables.keys() and not before.failed
        if before and is_known and not has_changed and marked_at_us == before.plan.marked_at_us:
            return None
        for key, rows in self._rows.items():
            rows.write.parquet(self._lake.uri(key))
        return RepairPlan(
            number=self._number,
            kind=PlanKind.MARKS,
            draft=self._draft,
            decided_at=self._at,
            bronze_version=-1,
            late_events=0,
            expired=0,
            marked_at_us=marked_at_us,
            tables=tables,
        )

    def _part(self, one: TableToCorrect, span: tuple[date, date]) -> TablePlan:
        name = one.query.writes.name
        self._on_step(f"{name}: recomputing what marks touch")
        events = self._marked.outstanding(name, events_of(self._silver, self._late, None, self._delay))
        found = events.count()
        counts = {"events": found, "pending": 0, "inserts": 0, "deletes": 0, "frozen": 0}
        if found:
            counts |= self._compare(one, events, span, is_small=found <= FEW_ROWS)
        return TablePlan(
            version=one.version,
            silver_version=one.silver_version,
            watermark_ms=one.note.watermark_ms,
            **counts,
        )

    def _compare(
        self, one: TableToCorrect, events: DataFrame, span: tuple[date, date], *, is_small: bool
    ) -> dict[str, int]:
        """Keeps the planned changes, and the events with whether they wait. Returns the counts."""
        name = one.query.writes.name
        silver = read_up_to(self._lake, SILVER_EVENTS, one.silver_version)
        live = self._lake.read(one.query.writes, version=one.version)
        there = events_of(silver, self._late, None, self._delay)
        scene = CorrectionInput(self._lake.settings, one.watermark, there, live, *span, is_small, self._marked.of_dates)
        touched = checkpointed(one.correction.recompute(events, scene))
        now, age = F.lit(one.watermark or self._at), self._lake.settings.repair.freeze_after
        frozen = is_older(F.expr(one.correction.time), now, age)
        causes, still_open = causes_of(touched, events), open_groups(touched, scene).select(GROUP)
        closed = _without(touched, still_open)
        gross = [column for column in live.columns if column not in one.correction.net]
        apart = changes(closed.expected, closed.actual, gross, causes, frozen).where(~F.col(IS_FROZEN))
        apart = apart.select(GROUP).distinct().localCheckpoint()
        waiting = touched.scope.join(still_open.unionByName(apart), on=GROUP, how="left_semi").select(*EVENT).distinct()
        marked = events.join(waiting.withColumn(IS_PENDING, F.lit(True)), on=list(EVENT), how="left")
        marked = marked.withColumn(IS_PENDING, F.coalesce(IS_PENDING, F.lit(False))).localCheckpoint()
        settled = _without(closed, apart)
        found = changes(settled.expected, settled.actual, live.columns, causes, frozen).localCheckpoint()
        folder = draft_key(self._number, self._draft)
        self._rows |= {events_key(folder, name): marked, changes_key(folder, name): found}
        return {"pending": marked.where(IS_PENDING).count(), **sums(found)}


def _without(touched: AffectedRows, groups: DataFrame) -> AffectedRows:
    expected, actual = (rows.join(groups, on=GROUP, how="left_anti") for rows in (touched.expected, touched.actual))
    return AffectedRows(touched.scope, expected, actual)
