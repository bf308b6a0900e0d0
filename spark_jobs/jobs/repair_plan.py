"""The plan of a repair: what was late since the last one, what it touches, and how these rows should be."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.contracts.durations import time_of_us
from spark_jobs.contracts.errors import LakeError
from spark_jobs.contracts.repair import (
    RepairDone,
    RepairPlan,
    TablePlan,
    changes_key,
    done_key,
    draft_key,
    events_key,
    late_key,
    plan_key,
)
from spark_jobs.contracts.settings import Settings
from spark_jobs.contracts.tables import LATE_EVENTS, SILVER_EVENTS
from spark_jobs.corrections.correction import DUE, GROUP, Correction, Scene, Touched
from spark_jobs.jobs.initial import has_taken, read_taken
from spark_jobs.jobs.lateness import IS_EXPIRED, late_for, new_late_events, replaced, spans_read
from spark_jobs.jobs.truth import events_of, span_of
from spark_jobs.lake.commits import CommitNote, last_note, version_reached
from spark_jobs.lake.layout import Lake
from spark_jobs.queries import QUERIES, Query
from spark_jobs.queries.deduplicate import QUERY as DEDUPLICATE
from spark_jobs.sources.delta import read_table
from spark_jobs.transforms.changes import COPIES, IS_FROZEN, changes, is_older
from spark_jobs.transforms.kept import with_columns
from spark_jobs.transforms.open_rows import KEY

OnStep = Callable[[str], None]
_WAITS = "waits"
"""Column: whether an event waits for the next repair."""


def make_plan(
    spark: SparkSession, settings: Settings, lake: Lake, last: int, *, dry_run: bool, on_step: OnStep
) -> RepairPlan | None:
    """Plans the repair after number ``last``, and unless ``dry_run`` writes the plan.

    Returns:
        The plan; None: nothing has been read since the last repair, and nothing waits.

    Raises:
        LakeError: another process has planned this repair meanwhile.
    """
    if not lake.has(SILVER_EVENTS):
        return None
    return _Planning(spark, settings, lake, last, dry_run=dry_run, on_step=on_step).plan()


@dataclass(frozen=True)
class _Wanted:
    """A table to correct: its query, and where that stood when it was looked at."""

    query: Query
    correction: Correction
    version: int
    note: CommitNote
    silver_version: int

    @property
    def watermark(self) -> datetime | None:
        return time_of_us(self.note.watermark_ms * 1000) if self.note.watermark_ms else None


class _Planning:
    def __init__(
        self, spark: SparkSession, settings: Settings, lake: Lake, last: int, *, dry_run: bool, on_step: OnStep
    ) -> None:
        self._spark, self._settings, self._lake, self._dry_run, self._on_step = spark, settings, lake, dry_run, on_step
        text = lake.files.read(plan_key(last)) if last else None
        self._before = RepairPlan.model_validate_json(text) if text else None
        done = lake.files.read(done_key(last)) if last else None
        self._failed = RepairDone.model_validate_json(done).failed if done else ()
        self._number, self._draft = last + 1, uuid4().hex
        self._folder = draft_key(self._number, self._draft)
        self._at = datetime.now(UTC)
        self._spans_of_silver: dict[int, tuple[date, date] | None] = {}

    def plan(self) -> RepairPlan | None:
        silver_version = self._lake.newest_commit(SILVER_EVENTS.path) or 0
        since = self._before.bronze_version if self._before else -1
        spans = spans_read(self._lake, DEDUPLICATE, since, until=silver_version)
        wanted = [found for query in QUERIES if (found := self._wanted(query))]
        if not spans and self._before and not self._before.pending and not self._failed and not self._has_more(wanted):
            return None
        self._on_step("looking for events that came too late for silver")
        silver = read_table(self._spark, self._lake, SILVER_EVENTS, version=silver_version)
        fresh = new_late_events(self._spark, self._settings, self._lake, spans, silver) if spans else None
        if fresh is not None:
            fresh = self._kept(fresh.withColumn("repair", F.lit(self._number).cast("bigint")), late_key(self._folder))
        late_events = 0 if fresh is None else fresh.count()
        expired = 0 if fresh is None else fresh.where(IS_EXPIRED).count()
        late = self._late(fresh if late_events else None)
        tables = {one.query.writes.name: self._part(one, late, fresh if late_events else None) for one in wanted}
        plan = RepairPlan(
            number=self._number,
            draft=self._draft,
            decided_at=self._at,
            bronze_version=spans[-1].last if spans else since,
            late_events=late_events,
            expired=expired,
            tables=tables,
        )
        if not self._dry_run:
            self._write(plan)
        return plan

    def _write(self, plan: RepairPlan) -> None:
        if not self._lake.files.create(plan_key(self._number), plan.model_dump_json(indent=2).encode()):
            raise LakeError(
                f"another process has planned repair {self._number} of {self._lake.place()} meanwhile: this one had "
                "lost its lock. Nothing was changed; run the repair again, and it goes on from the other plan"
            )

    def _kept(self, rows: DataFrame, key: str) -> DataFrame:
        """``rows``, written to ``key`` and read from there: what is planned does not change any more."""
        if self._dry_run:
            return rows.persist()
        # They count once there is a plan, so they need no log of their own.
        place = self._lake.uri(key)
        rows.write.parquet(place)
        return self._spark.read.parquet(place)

    def _wanted(self, query: Query) -> _Wanted | None:
        """Where ``query`` stands; None: its table is not corrected, or not there yet."""
        table = query.writes
        if query.correction is None or not query.is_corrected(self._settings) or not self._lake.has(table):
            return None
        if query.initial_state and query.initial_state.known and has_taken(self._lake, query):
            return None
        version = self._lake.newest_commit(table.path) or 0
        note = last_note(self._lake, query.name, until=version)
        if note is None:
            return None
        return _Wanted(query, query.correction(), version, note, min(map(version_reached, note.reached)))

    def _since(self, name: str) -> int:
        part = self._before.tables.get(name) if self._before else None
        return part.silver_version if part else -1

    def _has_more(self, wanted: list[_Wanted]) -> bool:
        return any(one.silver_version > self._since(one.query.writes.name) for one in wanted)

    def _late(self, fresh: DataFrame | None) -> DataFrame | None:
        """All late events that correct anything; None: there are none."""
        there = read_table(self._spark, self._lake, LATE_EVENTS) if self._lake.has(LATE_EVENTS) else None
        found = [rows for rows in (there, fresh) if rows is not None]
        if not found:
            return None
        rows = found[0] if len(found) == 1 else found[0].unionByName(found[1], allowMissingColumns=True)
        return rows.where(~F.col(IS_EXPIRED)).drop("repair", IS_EXPIRED).persist()

    def _part(self, one: _Wanted, late: DataFrame | None, fresh: DataFrame | None) -> TablePlan:
        name = one.query.writes.name
        self._on_step(f"{name}: recomputing what late events touch")
        silver = read_table(self._spark, self._lake, SILVER_EVENTS, version=one.silver_version)
        events = self._events(one, silver, late, fresh)
        found = 0 if events is None else events.count()
        counts = {"events": found, "pending": 0, "inserts": 0, "deletes": 0, "frozen": 0}
        if events is not None and found:
            counts |= self._compare(one, events, silver, late)
        return TablePlan(
            version=one.version,
            silver_version=one.silver_version,
            watermark_ms=one.note.watermark_ms,
            **counts,
        )

    def _events(
        self, one: _Wanted, silver: DataFrame, late: DataFrame | None, fresh: DataFrame | None
    ) -> DataFrame | None:
        """The events that were late for the table, and copies that are replaced; None: there are none."""
        name = one.query.writes.name
        spans = spans_read(self._lake, one.query, self._since(name), until=one.version)
        counted, found = F.lit(True).alias("is_counted"), []
        if (own := late_for(self._spark, self._lake, spans)) is not None:
            found.append(own.select("*", counted))
        on_time = None if fresh is None else fresh.where(~F.col(IS_EXPIRED)).drop("repair", IS_EXPIRED)
        if self._before and name not in self._before.tables:
            # Earlier repairs found late events while this table had no rows, or was not corrected.
            on_time = late
        if on_time is not None:
            found.append(on_time.select("*", counted))
        if self._before and name in self._before.tables and self._before.tables[name].events:
            earlier = self._spark.read.parquet(self._lake.uri(events_key(self._before.folder, name)))
            chosen = earlier if name in self._failed else earlier.where(_WAITS)
            found.append(chosen.drop(_WAITS))
        if late is not None and (spans or on_time is not None):
            copies = replaced(self._spark, self._lake, spans, silver, late, on_time)
            found.append(copies.select("*", F.lit(False).alias("is_counted")))
        if not found:
            return None
        rows = found[0]
        for more in found[1:]:
            rows = rows.unionByName(more, allowMissingColumns=True)
        # What waited may be from before a column was kept.
        whole = with_columns(rows, dict(silver.dtypes))
        return whole.dropDuplicates([*KEY, "event_time", "is_counted"]).localCheckpoint()

    def _span(self, version: int, silver: DataFrame, *others: DataFrame | None) -> tuple[date, date]:
        """The first and the last date of ``silver``, at ``version``, and ``others``; there are events."""
        if version not in self._spans_of_silver:
            self._spans_of_silver[version] = span_of(silver)
        spans = [span for span in (self._spans_of_silver[version], span_of(*others)) if span]
        return min(first for first, _ in spans), max(last for _, last in spans)

    def _compare(self, one: _Wanted, events: DataFrame, silver: DataFrame, late: DataFrame | None) -> dict[str, int]:
        """Writes what is to be changed, and the events with whether they wait. Returns the counts."""
        query, table = one.query, one.query.writes
        initial = None
        if query.initial_state and has_taken(self._lake, query):
            taken = read_taken(self._spark, self._lake, query)
            initial = taken.withColumn("event_date", F.to_date("event_time"))
        bounds = self._span(one.silver_version, silver, late, initial)
        live = read_table(self._spark, self._lake, table, version=one.version)
        scene = Scene(self._settings, one.watermark, events_of(silver, late, initial), live, *bounds)
        touched = _computed(one.correction.recompute(events, scene))
        open_groups, causes = _groups(touched, events, scene)
        waiting = touched.scope.join(open_groups, on=GROUP, how="left_semi").select(*KEY).distinct()
        marked = events.join(waiting.withColumn(_WAITS, F.lit(True)), on=list(KEY), how="left")
        kept = self._kept(
            marked.withColumn(_WAITS, F.coalesce(_WAITS, F.lit(False))), events_key(self._folder, table.name)
        )
        columns = live.columns
        # By event time, like everything: a lake of last year is not frozen when it is written.
        now = F.lit(one.watermark or self._at)
        frozen = is_older(F.expr(one.correction.time), now, self._settings.repair.freeze_after)
        closed = [rows.join(open_groups, on=GROUP, how="left_anti") for rows in (touched.expected, touched.actual)]
        changed = self._kept(
            changes(closed[0], closed[1], columns, causes, frozen), changes_key(self._folder, table.name)
        )
        return {"pending": kept.where(_WAITS).count(), **_sums(changed)}


def _computed(touched: Touched) -> Touched:
    """``touched``, computed once: each of its rows is asked for several times, and its plans are long."""
    return Touched(
        scope=touched.scope.distinct().localCheckpoint(),
        expected=touched.expected.localCheckpoint(),
        actual=touched.actual.localCheckpoint(),
    )


def _groups(touched: Touched, events: DataFrame, scene: Scene) -> tuple[DataFrame, DataFrame]:
    """The groups that are still open, and for each group the first event that touches it."""
    scope = touched.scope
    dues = scope.select(GROUP, DUE).unionByName(touched.expected.select(GROUP, DUE))
    last = dues.groupBy(GROUP).agg(F.max(DUE).alias(DUE))
    open_groups = last.where(~scene.is_closed(F.col(DUE))).select(GROUP).localCheckpoint()
    told = F.struct(F.col("ingest_time").alias("received_at"), *KEY, "cause")
    caused = scope.select(*KEY, GROUP).join(events, on=list(KEY), how="inner")
    causes = caused.groupBy(GROUP).agg(F.min(told).alias("told")).select(GROUP, "told.*")
    return F.broadcast(open_groups), causes


def _sums(changed: DataFrame) -> dict[str, int]:
    size, is_applied = F.abs(F.col(COPIES)), ~F.col(IS_FROZEN)
    (row,) = changed.agg(
        F.sum(F.when(is_applied & (F.col(COPIES) > 0), size)).alias("inserts"),
        F.sum(F.when(is_applied & (F.col(COPIES) < 0), size)).alias("deletes"),
        F.sum(F.when(~is_applied, size)).alias("frozen"),
    ).collect()
    return {name: int(value or 0) for name, value in row.asDict().items()}
