"""The plan of a run of credit: how the rows of conversions in ``gold/paths`` and ``gold/credits`` change."""

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.contracts.crediting import (
    CreditedTable,
    CreditPlan,
    Reach,
    credit_changes_key,
    credit_plan_key,
    draft_key,
)
from spark_jobs.contracts.errors import LakeError
from spark_jobs.contracts.replay import Window
from spark_jobs.contracts.settings import Settings
from spark_jobs.contracts.tables import ATTRIBUTIONS, CREDITS, PATHS, Table
from spark_jobs.corrections.correction import GROUP, dates_of
from spark_jobs.jobs.comparing import sums
from spark_jobs.jobs.credit_wanted import REASON, WHY, Conversions, ends_of
from spark_jobs.lake.layout import Lake
from spark_jobs.sources.delta import read_table
from spark_jobs.transforms.changes import changes, is_older
from spark_jobs.transforms.credits import credits_of
from spark_jobs.transforms.paths import BASIS_TIME, creditable, paths_of

OnStep = Callable[[str], None]
_FEW = 20_000
"""Up to so many conversions are sent to every task."""


class CreditPlanning:
    """Plans a run.

    Args:
        spark: the session.
        settings: those of the live jobs.
        lake: the lake.
        number: of the run.
        last: the run that this one goes on from; None: it is the first.
        reach: how far the tables have come.
        dry_run: only count; nothing is written.
        on_step: called with a line of text at every step.
    """

    def __init__(
        self,
        spark: SparkSession,
        settings: Settings,
        lake: Lake,
        number: int,
        last: CreditPlan | None,
        reach: Reach,
        *,
        dry_run: bool,
        on_step: OnStep,
    ) -> None:
        self._spark, self._settings, self._lake, self._number = spark, settings, lake, number
        self._reach, self._dry_run, self._on_step = reach, dry_run, on_step
        self._draft = uuid4().hex
        self._conversions = Conversions(spark, settings, lake, reach, last.reach if last else None)

    def plan(self, window: Window | None) -> CreditPlan:
        """Plans the conversions of ``window`` again; None: those that are new.

        Raises:
            LakeError: another process has planned this run meanwhile.
        """
        self._on_step("looking for conversions that are due")
        wanted = self._conversions.of_window(window) if window else self._conversions.new()
        wanted = wanted.localCheckpoint()
        fresh, again = (wanted.where(F.col(WHY).isNull() == is_first).count() for is_first in (True, False))
        tables = {}
        if fresh + again:
            self._on_step(f"{fresh + again:,} conversions: their touches and credits")
            tables = self._compare(wanted, is_few=fresh + again <= _FEW)
        plan = CreditPlan(
            number=self._number,
            draft=self._draft,
            decided_at=datetime.now(UTC),
            reach=self._reach,
            is_window=window is not None,
            settings=self._settings.credit.model_dump_json(),
            fresh=fresh,
            again=again,
            waiting=self._conversions.waiting(),
            tables=tables,
        )
        if not self._dry_run:
            self._write(plan)
        return plan

    def _write(self, plan: CreditPlan) -> None:
        if not self._lake.files.create(credit_plan_key(plan.number), plan.model_dump_json(indent=2).encode()):
            raise LakeError(
                f"another process has planned run {plan.number} of credit of {self._lake.place()} meanwhile: this one "
                "had lost its lock. Nothing was changed; run the command again, and it goes on from the other plan"
            )

    def _compare(self, wanted: DataFrame, *, is_few: bool) -> dict[str, CreditedTable]:
        """Writes how the rows of ``wanted`` conversions change. Returns the counts by table."""
        own = self._settings.credit

        def few(rows: DataFrame) -> DataFrame:
            return F.broadcast(rows) if is_few else rows

        ids = wanted.select(GROUP)
        events = self._conversions.events
        dates = dates_of(events.join(few(ids), on=F.col("event_id") == F.col(GROUP), how="left_semi"))
        # A refund, what it takes back, and the one of the same order before that.
        begin = dates[0] - 2 * own.conversion_lookback
        near = events.where(F.col("event_date").between(F.lit(begin), F.lit(dates[-1])))
        is_wanted = F.col("conversion_id") == F.col(GROUP)
        due = creditable(near, own).join(few(ids), on=is_wanted, how="left_semi").localCheckpoint()
        found = paths_of(few(due), self._attributions(due), own).localCheckpoint()
        told = wanted.select(GROUP, *[F.col(f"{WHY}.{name}").alias(name) for name in REASON])
        expected = {PATHS: found, CREDITS: credits_of(found, own)}
        return {
            table.name: self._compare_table(table, rows, self._actual(table, few(ids), dates), told)
            for table, rows in expected.items()
        }

    def _attributions(self, due: DataFrame) -> DataFrame:
        """The attributions that can hold touches of ``due`` conversions."""
        rows = read_table(self._spark, self._lake, ATTRIBUTIONS, version=self._reach.attributions_version)
        ends = ends_of(due, BASIS_TIME)
        if ends is None:
            return rows.where(F.lit(False))
        own, (first, last) = self._settings.credit, ends
        # The date is that of the impression, which a click may follow a day later.
        clicked, seen, newest = (
            F.lit(time.astimezone(UTC).date())
            for time in (first - own.click_lookback - self._settings.attribute.window, first - own.view_lookback, last)
        )
        on_date = F.col("event_date")
        is_near = F.col("click_time").isNotNull() | (on_date >= seen)
        return rows.where(on_date.between(clicked, newest) & is_near)

    def _actual(self, table: Table, ids: DataFrame, dates: Sequence[date]) -> DataFrame | None:
        """The rows of ``ids`` as they are; None: there is no such table yet."""
        if not self._lake.has(table):
            return None
        rows = read_table(self._spark, self._lake, table).where(F.col("event_date").isin(list(dates)))
        return rows.withColumn(GROUP, F.col("conversion_id")).join(ids, on=GROUP, how="left_semi")

    def _compare_table(
        self, table: Table, expected: DataFrame, actual: DataFrame | None, told: DataFrame
    ) -> CreditedTable:
        version = self._lake.newest_commit(table.path)
        due = expected.withColumn(GROUP, F.col("conversion_id"))
        time = F.col("conversion_time")
        is_final = is_older(time, F.lit(self._reach.until), self._settings.repair.freeze_after)
        frozen = self._conversions.was_due("conversion_time") & is_final
        found = changes(due, due.limit(0) if actual is None else actual, table.column_names, told, frozen)
        return CreditedTable(version=-1 if version is None else version, **sums(self._kept(found, table)))

    def _kept(self, changed: DataFrame, table: Table) -> DataFrame:
        """``changed``, written, and read from there: what is planned does not change any more."""
        if self._dry_run:
            return changed.persist()
        place = self._lake.uri(credit_changes_key(draft_key(self._number, self._draft), table.name))
        changed.write.parquet(place)
        return self._spark.read.parquet(place)
