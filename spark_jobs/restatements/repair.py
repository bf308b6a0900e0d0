"""Repairs: late events correct gold while the live queries run.

::

    bronze ──late──▶ silver/late_events ─┐
    silver ──late for a query────────────┴─▶ what they touch: as it is ⇄ as it should be
                                                 │
                                    plan: rows to delete and to insert, in _repairs/<number>
                                                 │
                            each table in one commit, then gold/restatements ──▶ done

**In the end equal.** The operator of its live query recomputes each table from all events, late ones included, but only
where late events touch it. Rows that the live query may still change are left for a later repair.

**Exactly once.** The plan, with every row to delete and to insert, lies in the lake before anything is changed; a
repair that was killed is completed from it: see :mod:`spark_jobs.restatements.apply`.

**Nothing live is disturbed.** Late events never reach silver, so they move no watermark; and gold is changed by commits
that do not conflict with what queries append: see :mod:`spark_jobs.spark.rewrite_rows`.
"""

from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from uuid import uuid4

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.config.sections import RepairSettings
from spark_jobs.contract.tables import LATE_EVENTS, SILVER_EVENTS, Table
from spark_jobs.places import REPAIR
from spark_jobs.queries.arrivals import read_up_to
from spark_jobs.queries.correction import GROUP, CorrectionInput
from spark_jobs.queries.facts import IS_EXPIRED, events_of, silver_span, span_of
from spark_jobs.queries.identity import delay_of
from spark_jobs.queries.initial_state import initial_events
from spark_jobs.queries.registry import QUERIES, writer_of
from spark_jobs.restatements.apply import Changes, OnStep, Restating, restate
from spark_jobs.restatements.compare import causes_of, changes, checkpointed, is_older, open_groups, restatements, sums
from spark_jobs.restatements.pending import IS_PENDING, PendingLateEvents, TableToCorrect, tables_to_correct
from spark_jobs.restatements.pending_marks import PendingMarks
from spark_jobs.restatements.plan import RepairPlan, TablePlan, changes_key, draft_key, events_key, late_key
from spark_jobs.restatements.plans import GOLD_PLANS, last_repair
from spark_jobs.spark.columns import MOST_ROWS
from spark_jobs.spark.open_lake import OpenLake
from spark_jobs.traffic_rules.kinds.common import EVENT

_BESIDE = timedelta(days=2)
"""How far late events are read beyond the horizon of corrections: sessions and averages cross it."""


def repair(lake: OpenLake, *, dry_run: bool = False, on_step: OnStep = lambda _line: None) -> RepairPlan | None:
    """Corrects gold to what it would be if no event had been late.

    Rows that the live queries may still change are left for the next repair. Jobs may be running. A killed repair is
    completed first.

    Args:
        lake: the lake.
        dry_run: only plan; nothing is written that counts.
        on_step: called with a line of text at every step.

    Returns:
        What it found and changed; None: nothing has been read since the last repair.

    Raises:
        LakeError: see :func:`spark_jobs.restatements.apply.restate`.
        LakeInUseError: another repair is at work.
    """

    def plan(number: int) -> RepairPlan | None:
        return make_plan(lake, number, dry_run=dry_run, on_step=on_step)

    return restate(lake, GOLD, plan, dry_run=dry_run, on_step=on_step)


def _keep_late(run: Restating[RepairPlan], plan: RepairPlan) -> None:
    """Appends the events that were too late for silver to ``silver/late_events``."""
    if plan.late_events:
        run.on_step(f"{plan.late_events:,} late events into {LATE_EVENTS.path}")
        rows = run.lake.read_parquet(late_key(plan.folder))
        run.append(rows, LATE_EVENTS, REPAIR, plan.number)


def _restatements(changed: DataFrame, plan: RepairPlan, table: Table) -> DataFrame:
    query = writer_of(table)
    correction, columns = query.correction(), changed.select("row.*").columns
    return restatements(changed, correction.key(columns), columns, correction.time, correction.counts).select(
        F.lit(plan.number).cast("bigint").alias("repair"),
        F.lit(table.name).alias("table_name"),
        "*",
        F.lit(plan.decided_at).alias("decided_at"),
    )


GOLD = Changes(
    GOLD_PLANS,
    tuple(query.writes for query in QUERIES if query.is_correctable),
    _restatements,
    before=_keep_late,
    others=(LATE_EVENTS,),
)
"""The changes of repairs, replays and marks."""


def make_plan(lake: OpenLake, number: int, *, dry_run: bool, on_step: OnStep) -> RepairPlan | None:
    """Plans the repair ``number``, and unless ``dry_run`` writes the rows of the plan.

    Returns:
        The plan; None: nothing has been read since the last repair, and nothing waits.
    """
    if not lake.has(SILVER_EVENTS):
        return None
    return _Planning(lake, number, dry_run=dry_run, on_step=on_step).plan()


def _oldest(wanted: list[TableToCorrect], settings: RepairSettings) -> datetime | None:
    """Rows older than this are all frozen, even if a late event touches them. None: no row is."""
    watermarks = [one.watermark for one in wanted if one.watermark]
    return min(watermarks) - max(settings.horizon, settings.freeze_after) - _BESIDE if watermarks else None


class _Planning:
    def __init__(self, lake: OpenLake, number: int, *, dry_run: bool, on_step: OnStep) -> None:
        self._lake, self._dry_run, self._on_step = lake, dry_run, on_step
        self._number, self._draft = number, uuid4().hex
        self._folder = draft_key(self._number, self._draft)
        self._at = datetime.now(UTC)
        self._wanted = tables_to_correct(lake)
        since = _oldest(self._wanted, lake.settings.repair)
        self._outstanding = PendingLateEvents(lake, last_repair(lake), self._keep_late, since=since)
        self._marked = PendingMarks.of(lake)

    def plan(self) -> RepairPlan | None:
        if not self._outstanding.has_any(self._wanted):
            return None
        self._on_step("looking for events that came too late for silver")
        fresh = self._outstanding.fresh
        return RepairPlan(
            number=self._number,
            draft=self._draft,
            decided_at=self._at,
            bronze_version=self._outstanding.bronze_version,
            late_events=0 if fresh is None else fresh.count(),
            expired=0 if fresh is None else fresh.where(IS_EXPIRED).count(),
            tables={one.query.writes.name: self._part(one) for one in self._wanted},
        )

    def _keep_late(self, fresh: DataFrame) -> DataFrame:
        kept = self._kept(fresh.withColumn("repair", F.lit(self._number).cast("bigint")), late_key(self._folder))
        return kept.drop("repair")

    def _kept(self, rows: DataFrame, key: str) -> DataFrame:
        """``rows``, written to ``key`` and read from there: a plan does not change afterwards."""
        if self._dry_run:
            return rows.persist()
        # They count once the plan is written, so they need no log of their own.
        rows.write.parquet(self._lake.uri(key))
        return self._lake.read_parquet(key)

    def _part(self, one: TableToCorrect) -> TablePlan:
        self._on_step(f"{one.query.writes.name}: recomputing what late events touch")
        silver = read_up_to(self._lake, SILVER_EVENTS, one.silver_version)
        events = self._outstanding.events(one, silver)
        found = 0 if events is None else events.count()
        counts = {"events": found, "pending": 0, "inserts": 0, "deletes": 0, "frozen": 0}
        if events is not None and found:
            counts |= self._compare(one, events, silver, is_small=found <= MOST_ROWS)
        return TablePlan(
            version=one.version,
            silver_version=one.silver_version,
            watermark_ms=one.note.watermark_ms,
            **counts,
        )

    @cached_property
    def _silver_span(self) -> tuple[date, date] | None:
        return silver_span(self._lake)

    def _compare(self, one: TableToCorrect, events: DataFrame, silver: DataFrame, *, is_small: bool) -> dict[str, int]:
        """Writes the planned changes, and the events with whether they wait. Returns the counts."""
        table, late = one.query.writes, self._outstanding.late
        initial = initial_events(self._lake, one.query)
        bounds = span_of(self._silver_span, late, initial)
        assert bounds  # noqa: S101 some events are late
        live = self._lake.read(table, version=one.version)
        invalid = self._marked.of_dates if self._marked else None
        there = events_of(silver, late, initial, delay_of(self._lake.settings.deduplicate))
        scene = CorrectionInput(self._lake.settings, one.watermark, there, live, *bounds, is_small, invalid)
        touched = checkpointed(one.correction.recompute(events, scene))
        still_open, causes = open_groups(touched, scene), causes_of(touched, events)
        waiting = touched.scope.join(still_open, on=GROUP, how="left_semi").select(*EVENT).distinct()
        marked = events.join(waiting.withColumn(IS_PENDING, F.lit(True)), on=list(EVENT), how="left")
        kept = self._kept(
            marked.withColumn(IS_PENDING, F.coalesce(IS_PENDING, F.lit(False))), events_key(self._folder, table.name)
        )
        # In event time, like everything: last year's events, written now, are not frozen at once.
        now = F.lit(one.watermark or self._at)
        frozen = is_older(F.expr(one.correction.time), now, self._lake.settings.repair.freeze_after)
        closed = [rows.join(still_open, on=GROUP, how="left_anti") for rows in (touched.expected, touched.actual)]
        changed = self._kept(
            changes(closed[0], closed[1], live.columns, causes, frozen), changes_key(self._folder, table.name)
        )
        return {"pending": kept.where(IS_PENDING).count(), **sums(changed)}
