"""The plan of a run of credit: how the rows of conversions change, in the tables of each variant."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from uuid import uuid4

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.config.durations import EPOCH, Window
from spark_jobs.contract.tables import ATTRIBUTIONS, NET_PATHS, PATHS, Table
from spark_jobs.credit.due_conversions import ends_of
from spark_jobs.credit.gross_and_net import GROSS, GrossOrNet, NetView
from spark_jobs.credit.last_touches import crowded_users
from spark_jobs.credit.models import credits_of
from spark_jobs.credit.orders import BASIS_TIME, judged
from spark_jobs.credit.paths import left_out_of, paths_of, shown_of, with_touches
from spark_jobs.credit.plan import CreditHorizon, CreditPlan
from spark_jobs.credit.selection import REASON, WHY, ConversionsToCompute, first_reasons
from spark_jobs.places import CREDIT_RUNS
from spark_jobs.queries.correction import GROUP
from spark_jobs.restatements.compare import changes, is_older, sums
from spark_jobs.restatements.plan import ChangedTable, draft_key
from spark_jobs.spark.columns import dates_of, few
from spark_jobs.spark.open_lake import OpenLake

OnStep = Callable[[str], None]
_TIME = "conversion_time"
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class _Part:
    """The part of a plan for one variant: its changes by table, and the conversions computed first and again.

    ``crowded`` counts the users with more than ``credit.most_touches`` touches.
    """

    fresh: int = 0
    again: int = 0
    crowded: int = 0
    tables: Mapping[str, ChangedTable] = field(default_factory=dict)


class CreditPlanning:
    """Plans a run.

    Args:
        lake: the lake.
        number: of the run.
        last: the run that this one continues from; None: it is the first.
        reach: how far the tables have come.
        dry_run: only count; nothing is written.
        on_step: called with a line of text at every step.
    """

    def __init__(
        self,
        lake: OpenLake,
        number: int,
        last: CreditPlan | None,
        reach: CreditHorizon,
        *,
        dry_run: bool,
        on_step: OnStep,
    ) -> None:
        self._lake, self._number = lake, number
        self._reach, self._dry_run, self._on_step = reach, dry_run, on_step
        self._draft = uuid4().hex
        self._last = last.reach if last else self._written()
        self._is_last_unknown = last is None and self._last is not None
        self._conversions = ConversionsToCompute(lake, reach, self._last)

    def plan(self, window: Window | None) -> CreditPlan:
        """Plans the conversions of ``window`` again; None: the new ones."""
        self._on_step("looking for conversions that are due")
        wanted = (self._conversions.of_window(window) if window else self._wanted()).localCheckpoint()
        gross = self._part(GROSS, self._conversions, wanted)
        net = self._net(wanted, window)
        return CreditPlan(
            number=self._number,
            draft=self._draft,
            decided_at=datetime.now(UTC),
            reach=self._reach,
            is_window=window is not None,
            settings=self._lake.settings.credit.model_dump_json(),
            fresh=gross.fresh,
            again=gross.again,
            net_fresh=net.fresh,
            net_again=net.again,
            crowded=gross.crowded,
            waiting=self._conversions.waiting(),
            tables={**gross.tables, **net.tables},
        )

    def _written(self) -> CreditHorizon | None:
        """How far the tables have come if the plans of their runs are gone: the lake was restored without them."""
        if not self._lake.has(PATHS) or not (ends := ends_of(self._lake.read(PATHS), _TIME)):
            return None
        net = self._reach.marks_version if self._lake.has(NET_PATHS) else -1
        return self._reach.model_copy(update={"until": min(ends[1], self._reach.until), "marks_version": net})

    def _wanted(self) -> DataFrame:
        """The new conversions; if earlier runs are unknown also theirs, which were due and so may be frozen."""
        new = self._conversions.new()
        if self._last is None or not self._is_last_unknown:
            return new
        before = Window(EPOCH, self._last.until + _MICROSECOND)
        return new.unionByName(self._conversions.of_window(before))

    def _net(self, wanted: DataFrame, window: Window | None) -> _Part:
        """The part of a plan for net credit; ``wanted`` are the conversions of gross."""
        if self._reach.marks_version < 0:
            return _Part()
        marks = NetView(self._lake, self._reach.marks_version)
        if self._last is None or self._last.marks_version < 0:
            # No net credit exists yet.
            every = ConversionsToCompute(self._lake, self._reach, None)
            return self._part(marks.net, every, every.of_window(window) if window else every.new())
        changed = None if window else marks.changed(self._last.marks_version)
        if changed is not None:
            wanted = first_reasons(wanted.unionByName(self._conversions.changed_by(changed)))
        return self._part(marks.net, self._conversions, wanted)

    def _part(self, variant: GrossOrNet, conversions: ConversionsToCompute, wanted: DataFrame) -> _Part:
        """Writes how the rows of ``wanted`` conversions change in the tables of ``variant``."""
        wanted = wanted.localCheckpoint()
        causes = wanted.groupBy(GROUP).agg(F.min(WHY).alias(WHY)).localCheckpoint()
        fresh, again = (causes.where(F.col(WHY).isNull() == is_first).count() for is_first in (True, False))
        if not fresh + again:
            return _Part()
        self._on_step(f"{fresh + again:,} conversions: {variant.paths.path} and {variant.credits.path}")
        crowded, tables = self._compare(variant, conversions, wanted, causes)
        return _Part(fresh, again, crowded, tables)

    def _compare(
        self, variant: GrossOrNet, conversions: ConversionsToCompute, wanted: DataFrame, causes: DataFrame
    ) -> tuple[int, dict[str, ChangedTable]]:
        own = self._lake.settings.credit
        each = wanted.groupBy(F.col("event_id").alias("conversion_id"), F.col("event_time").alias(_TIME))
        ids = few(each.agg(F.min(GROUP).alias(GROUP)).localCheckpoint())
        dates = dates_of(ids.select(F.to_date(_TIME).alias("event_date")))
        # A refund, the conversion that it takes back, and the one of the same order before that.
        begin = dates[0] - own.conversion_lookback - own.repeat_within
        near = variant.conversions(conversions.counted(begin, dates[-1]), begin, dates[-1])

        def of_wanted(rows: DataFrame) -> DataFrame:
            return rows.join(ids, on=["conversion_id", _TIME], how="inner")

        due = of_wanted(judged(near, own)).drop(GROUP).localCheckpoint()
        shown, sent = shown_of(self._attributions(variant, due)), few(due)
        crowded = crowded_users(sent, shown, own.most_touches).localCheckpoint()
        count = crowded.count()
        touched = with_touches(sent, shown, own, crowded if count else None).localCheckpoint()
        found = paths_of(touched)
        reasons = causes.select(GROUP, *[F.col(f"{WHY}.{name}").alias(name) for name in REASON])
        is_final = is_older(F.col(_TIME), F.lit(self._reach.until), self._lake.settings.repair.freeze_after)
        frozen = conversions.was_due(_TIME) & is_final
        expected = {variant.paths: found, variant.credits: credits_of(found, own)}
        if variant.left_out:
            expected[variant.left_out] = left_out_of(touched)
        return count, {
            table.name: self._compare_table(
                table, of_wanted(rows), of_wanted(self._actual(table, rows, dates)), reasons, frozen
            )
            for table, rows in expected.items()
        }

    def _attributions(self, variant: GrossOrNet, due: DataFrame) -> DataFrame:
        """The attributions that can hold touches of ``due`` conversions."""
        rows = self._lake.read(ATTRIBUTIONS, version=self._reach.attributions_version)
        ends = ends_of(due, BASIS_TIME)
        if ends is None:
            return rows.where(F.lit(False))
        own, (first, last) = self._lake.settings.credit, ends
        # The date is that of the impression: a click may be on the next one, or on the one before.
        clicked, seen, newest = (
            time.astimezone(UTC).date()
            for time in (
                first - own.click_lookback - self._lake.settings.attribute.window,
                first - own.view_lookback,
                last + self._lake.settings.attribute.tolerance,
            )
        )
        on_date = F.col("event_date")
        is_near = F.col("click_time").isNotNull() | (on_date >= F.lit(seen))
        near = rows.where(on_date.between(F.lit(clicked), F.lit(newest)) & is_near)
        # A click after the last conversion is no touch, so its mark does not matter.
        return variant.attributions(near, clicked, newest)

    def _actual(self, table: Table, expected: DataFrame, dates: Sequence[date]) -> DataFrame:
        """The rows of ``table`` on ``dates``; no row, with the columns of ``expected``, if it does not exist yet."""
        if not self._lake.has(table):
            return expected.limit(0)
        return self._lake.read(table).where(F.col("event_date").isin(list(dates)))

    def _compare_table(
        self, table: Table, expected: DataFrame, actual: DataFrame, causes: DataFrame, frozen: Column
    ) -> ChangedTable:
        version = self._lake.newest_commit(table.path)
        found = changes(expected, actual, table.column_names, causes, frozen)
        return ChangedTable(version=-1 if version is None else version, **sums(self._kept(found, table)))

    def _kept(self, changed: DataFrame, table: Table) -> DataFrame:
        """``changed``, written and read from there: a plan does not change afterwards."""
        if self._dry_run:
            return changed.persist()
        key = f"{draft_key(self._number, self._draft, CREDIT_RUNS)}/{table.name}"
        changed.write.parquet(self._lake.uri(key))
        return self._lake.read_parquet(key)
