"""The engine that repairs, replays, marks and credit change tables of gold with.

::

    plan ──▶ rows to delete and to insert, plan.json ──▶ each table in one commit, then gold/restatements ──▶ done.json
                                            └── killed from here on: the next process completes it first

**Exactly once.** Each commit carries the number of the plan. Numbers come from the logs of the tables, so a restored
lake continues from its tables, whatever plans it has. Delta skips an append with a number that it has seen; here that
is an error, because the rows would be lost.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic

from delta.exceptions import ConcurrentDeleteDeleteException, ConcurrentDeleteReadException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.contract.tables import RESTATEMENTS, Table
from spark_jobs.errors import LakeError
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.lock import Check
from spark_jobs.lake.notes import CommitNote
from spark_jobs.lake.table_files import last_transaction
from spark_jobs.queries.kept_columns import with_columns
from spark_jobs.restatements.compare import rows_of
from spark_jobs.restatements.plan import RepairDone
from spark_jobs.restatements.plans import AnyPlan, Plans
from spark_jobs.spark.open_lake import OpenLake, declared
from spark_jobs.spark.rewrite_rows import Rewrite, RowsChangedError, rewrite_rows
from spark_jobs.spark.write_delta import add_columns, append_rows

_ATTEMPTS = 5
_log = logging.getLogger(__name__)
OnStep = Callable[[str], None]


@dataclass(frozen=True)
class Changes(Generic[AnyPlan]):
    """The tables that the plans of one folder change, and how their rows of ``gold/restatements`` are made.

    Attributes:
        plans: the plans.
        tables: the tables to change, in this order.
        restatements: gives the rows of ``gold/restatements`` for the changed rows of a table.
        before: called before the tables are changed.
        after: called when a plan is done, unless others had changed its rows.
        others: tables that ``before`` appends to.
        is_appended: whether a change that deletes nothing is an append. Only for tables that no query writes:
            validation takes rows appended to the table of a query for those of a batch.
    """

    plans: Plans[AnyPlan]
    tables: tuple[Table, ...]
    restatements: Callable[[DataFrame, AnyPlan, Table], DataFrame]
    before: Callable[["Restating[AnyPlan]", AnyPlan], None] = lambda _run, _plan: None
    after: Callable[[Lake, AnyPlan], None] = lambda _lake, _plan: None
    others: tuple[Table, ...] = ()
    is_appended: bool = False


def restate(
    lake: OpenLake,
    changes: Changes[AnyPlan],
    plan: Callable[[int], AnyPlan | None],
    *,
    dry_run: bool = False,
    on_step: OnStep = lambda _line: None,
) -> AnyPlan | None:
    """Plans changes and applies them. An interrupted plan is completed first.

    Args:
        lake: the lake; jobs may be running.
        changes: the kind of change.
        plan: writes the rows of a plan of the given number and returns it; None: nothing changes.
        dry_run: only plan.
        on_step: called with a line of text at every step.

    Returns:
        The plan that was made.

    Raises:
        LakeError: a table was changed by others in each attempt, another process has planned the same number, or Delta
            skipped an append.
        LakeInUseError: another process holds the lock.
    """
    with lake.hold(changes.plans.writer) as check_lock:
        run = Restating(lake, changes, check_lock, on_step)
        for _ in range(_ATTEMPTS):
            run.complete_interrupted()
            planned = plan(run.next_number())
            if planned is None or dry_run:
                return planned
            check_lock()
            changes.plans.write(lake, planned)
            if not run.apply(planned).failed:
                return planned
    raise LakeError(
        f"tables of {lake.root} were changed during each of {_ATTEMPTS} attempts of {changes.plans.writer} to change "
        "them; is somebody else writing to them? `adloom replay` shows which rows of gold differ"
    )


class Restating(Generic[AnyPlan]):
    """Applies planned changes, under the lock."""

    def __init__(self, lake: OpenLake, changes: Changes[AnyPlan], check_lock: Check, on_step: OnStep) -> None:
        self.lake, self.on_step = lake, on_step
        self._changes, self._plans, self._check_lock = changes, changes.plans, check_lock

    def complete_interrupted(self) -> None:
        """Completes the plan whose process was killed, or deletes what a completed one left behind."""
        if begun := self._plans.unfinished(self.lake):
            self.on_step(f"{self._plans.writer} {begun.number} was interrupted: completing it")
            self.apply(begun)
        elif newest := self._plans.newest(self.lake):
            self._plans.clean(self.lake, newest)

    def next_number(self) -> int:
        """A number greater than those of all plans, and all that a table has seen from this writer."""
        newest = self._plans.newest(self.lake)
        tables, writer = self._changes.tables, self._plans.writer
        used = [last_transaction(self.lake, table, writer) for table in (*tables, *self._changes.others)]
        used += [last_transaction(self.lake, RESTATEMENTS, self._teller(table)) for table in tables]
        return max(newest.number if newest else 0, *used) + 1

    def apply(self, plan: AnyPlan) -> RepairDone:
        """Applies those planned changes that have not been applied yet."""
        self._changes.before(self, plan)
        failed = []
        for table in self._changes.tables:
            part = plan.tables.get(table.name)
            if part is None or not part.inserts + part.deletes + part.frozen:
                continue
            self._check_lock()
            try:
                self._change(plan, table)
            except RowsChangedError as error:
                _log.warning("%s; it is planned again", error)
                failed.append(table.name)
        versions = {name: self.lake.newest_commit(table.path) or 0 for name, table in self._tables(plan).items()}
        done = RepairDone(versions=versions, failed=tuple(failed))
        if not failed:
            self._changes.after(self.lake, plan)
        self._plans.finish(self.lake, plan, done)
        return done

    def append(self, rows: DataFrame, table: Table, writer: str, number: int) -> None:
        """Appends ``rows``, unless the plan ``number`` has appended them before.

        Raises:
            LakeError: ``table`` has seen a greater number of ``writer``, so Delta would skip the rows.
        """
        last = last_transaction(self.lake, table, writer)
        if last < number:
            # An earlier version may have planned it with fewer columns, or created the table.
            whole = declared(rows, table)
            add_columns(self.lake, table, whole)
            append_rows(whole, self.lake, table, CommitNote(writer=writer, batch=number))
            last = last_transaction(self.lake, table, writer)
        if last != number:
            place = self.lake.shown(f"{self._plans.folder}/{number}")
            raise LakeError(
                f"{table.path} of {self.lake.root} did not take the rows of {writer} {number}: its last number of this "
                f"writer is {last}. Were the table and {place} restored from different copies? Move {place} away and "
                "run the same command again: it plans these changes again"
            )

    def _tables(self, plan: AnyPlan) -> dict[str, Table]:
        return {table.name: table for table in self._changes.tables if table.name in plan.tables}

    def _teller(self, table: Table) -> str:
        """The writer of the restatements of ``table``: one per table, so that each table's are written exactly once."""
        return f"{self._plans.writer} {table.name}"

    def _change(self, plan: AnyPlan, table: Table) -> None:
        """Changes one table, and records the changes in ``gold/restatements``."""
        part, writer = plan.tables[table.name], self._plans.writer
        changed = self.lake.read_parquet(plan.rows_key(table.name))
        if part.inserts + part.deletes:
            self.on_step(f"{table.name}: {part.deletes:,} rows out, {part.inserts:,} rows in")
            if self._changes.is_appended and not part.deletes:
                self.append(rows_of(changed, inserted=True), table, writer, plan.number)
            elif last_transaction(self.lake, table, writer) < plan.number:
                # An earlier version may have created the table.
                add_columns(self.lake, table, changed.select("row.*"))
                change_rows(self.lake, table, changed, CommitNote(writer=writer, batch=plan.number))
        rows = self._changes.restatements(changed, plan, table)
        # Each commit to gold/restatements makes `adloom days` start Spark.
        if not rows.isEmpty():
            self.append(rows, RESTATEMENTS, self._teller(table), plan.number)


def change_rows(lake: OpenLake, table: Table, changed: DataFrame, note: CommitNote) -> None:
    """Deletes and inserts rows of ``table``, in one commit that carries ``note``.

    Args:
        lake: where the table lies.
        table: an existing table.
        changed: from :func:`spark_jobs.restatements.compare.changes`.
        note: the writer and the number of the change. The caller has checked that the table does not have it yet.

    Raises:
        RowsChangedError: a row to delete is missing. Nothing was changed.
        LakeError: others rewrote its files in each attempt, or this Delta lacks the internals that it needs.
    """
    change = _rows(lake, table, changed)
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            rewrite_rows(lake, table, change, note)
        except (ConcurrentDeleteDeleteException, ConcurrentDeleteReadException) as error:
            _log.warning("%s: others rewrote its files, attempt %d: %s", table.path, attempt, error)
        else:
            return
    raise LakeError(
        f"files of {table.path} in {lake.root} were rewritten during each of {_ATTEMPTS} attempts to change rows of "
        "it; is it being compacted? Run the same command again: it resumes its plan"
    )


def _rows(lake: OpenLake, table: Table, changed: DataFrame) -> Rewrite:
    types = dict(lake.spark.read.format("delta").load(lake.table(table)).dtypes)
    there, columns = list(types), changed.select("row.*").columns
    assert set(columns) <= set(there), (columns, there)  # noqa: S101 the plan was made from this table
    # An earlier version may have planned it with fewer columns.
    deletes, inserts = (
        with_columns(rows_of(changed, inserted=inserted), types).persist() for inserted in (False, True)
    )
    (name,) = table.partition_by or table.stats_columns[:1]
    if table.partition_by:
        near = F.col(name).isin([row[0] for row in deletes.select(name).distinct().collect()])
    else:
        first, last = deletes.agg(F.unix_micros(F.min(name)), F.unix_micros(F.max(name))).collect()[0]
        ends = (F.timestamp_micros(F.lit(end)) for end in (first, last))
        near = F.lit(False) if first is None else F.col(name).between(*ends)
    return Rewrite(deletes.select(*there), inserts.select(*there), near)
