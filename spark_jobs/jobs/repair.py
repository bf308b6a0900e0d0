"""Late events correct gold: what had been too late for the live queries is brought in, while they run.

::

    bronze ──late──▶ silver/late_events ─┐
    silver ──late for a query────────────┴─▶ what they touch: as it is ⇄ as it should be
                                                 │
                                    plan: rows to delete and to insert, in _repairs/<number>
                                                 │
                            each table in one commit, then gold/restatements ──▶ done

**In the end equal.** Each table is recomputed by the operator of its live query from all events, late ones included,
but only where late events touch it. What the live query may still change waits for a later repair.

**Exactly once.** The plan, with every row to delete and to insert, lies in the lake before anything is changed. Each
commit bears the number of the repair. A repair that was killed goes on from its plan.

**Nothing live is disturbed.** Late events never reach silver, so they move no watermark; and gold is changed by commits
that do not conflict with what queries append: see :mod:`spark_jobs.sinks.rewriting`.
"""

import logging
from collections.abc import Callable

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_jobs.contracts.errors import LakeError
from spark_jobs.contracts.repair import (
    REPAIR,
    RepairDone,
    RepairPlan,
    changes_key,
    done_key,
    late_key,
    plan_key,
    repair_key,
)
from spark_jobs.contracts.settings import Settings
from spark_jobs.contracts.tables import LATE_EVENTS, RESTATEMENTS
from spark_jobs.jobs.changing import change_rows
from spark_jobs.jobs.plans import newest_number, unfinished
from spark_jobs.jobs.repair_plan import make_plan
from spark_jobs.lake.commits import CommitNote
from spark_jobs.lake.layout import Lake
from spark_jobs.queries import QUERIES, TABLES_BY_NAME, Query
from spark_jobs.runtime.lock import Check, hold_job
from spark_jobs.sinks.delta import add_columns, append_rows
from spark_jobs.sinks.rewriting import RowsChangedError, has_written
from spark_jobs.sources.delta import declared
from spark_jobs.transforms.changes import restatements

_ATTEMPTS = 5
_log = logging.getLogger(__name__)
OnStep = Callable[[str], None]


def repair(
    spark: SparkSession,
    settings: Settings,
    lake: Lake,
    *,
    dry_run: bool = False,
    on_step: OnStep = lambda _line: None,
) -> RepairPlan | None:
    """Brings gold to what it would be had nothing been late, as far as that is decided.

    Jobs may be running. A repair that was killed is completed first.

    Args:
        spark: the session.
        settings: those of the live jobs.
        lake: the lake.
        dry_run: only plan; nothing is written that counts.
        on_step: called with a line of text at every step.

    Returns:
        What it found and changed; None: nothing has been read since the last repair.

    Raises:
        LakeError: a table was changed in each attempt, or another process has planned this repair meanwhile.
        LakeInUseError: another repair is at work.
    """
    with hold_job(lake, REPAIR, settings.s3, spark=spark) as check_lock:
        for _ in range(_ATTEMPTS):
            last = finish_interrupted(spark, lake, check_lock, on_step)
            plan = make_plan(spark, settings, lake, last, dry_run=dry_run, on_step=on_step)
            if plan is None or dry_run:
                return plan
            check_lock()
            if not apply_plan(spark, lake, plan, check_lock, on_step).failed:
                return plan
    raise LakeError(
        f"tables of {lake.root} were changed during each of {_ATTEMPTS} attempts to repair them; is somebody else "
        "writing to them? `adloom replay` shows which rows differ"
    )


def finish_interrupted(spark: SparkSession, lake: Lake, check_lock: Check, on_step: OnStep) -> int:
    """Completes the repair, or the replay, that was killed after it had planned. Returns the newest number."""
    last = newest_number(lake)
    if last and (begun := unfinished(lake, last)):
        on_step(f"{begun.kind} {last} was interrupted: going on with it")
        apply_plan(spark, lake, begun, check_lock, on_step)
    return last


def apply_plan(spark: SparkSession, lake: Lake, plan: RepairPlan, check_lock: Check, on_step: OnStep) -> RepairDone:
    """Does what is planned, as far as it has not been done yet."""
    if plan.late_events:
        on_step(f"{plan.late_events:,} late events into {LATE_EVENTS.path}")
        # An earlier version may have planned it, and have known fewer columns.
        rows = declared(spark.read.parquet(lake.uri(late_key(plan.folder))), LATE_EVENTS)
        add_columns(lake, LATE_EVENTS, rows)
        append_rows(rows, lake, LATE_EVENTS, CommitNote(writer=REPAIR, batch=plan.number))
    failed = []
    for query in QUERIES:
        part = plan.tables.get(query.writes.name)
        if part is None or not part.inserts + part.deletes + part.frozen:
            continue
        check_lock()
        try:
            _change(spark, lake, plan, query, on_step)
        except RowsChangedError as error:
            _log.warning("%s; it is planned anew", error)
            failed.append(query.writes.name)
    versions = {name: lake.newest_commit(TABLES_BY_NAME[name].path) or 0 for name in plan.tables}
    done = RepairDone(versions=versions, failed=tuple(failed))
    lake.files.write(done_key(plan.number), done.model_dump_json().encode())
    _delete_other_drafts(lake, plan)
    return done


def _delete_other_drafts(lake: Lake, plan: RepairPlan) -> None:
    """Deletes the rows of plans that were never made: their process was killed, or another one was first."""
    folder = repair_key(plan.number)
    for name in lake.files.names(folder):
        if name != plan.draft and f"{folder}/{name}" not in (plan_key(plan.number), done_key(plan.number)):
            lake.files.delete_folder(f"{folder}/{name}")


def _change(spark: SparkSession, lake: Lake, plan: RepairPlan, query: Query, on_step: OnStep) -> None:
    """Changes one table, and tells what was changed."""
    table, note = query.writes, CommitNote(writer=REPAIR, batch=plan.number)
    assert query.correction is not None  # noqa: S101 it has a plan
    correction = query.correction()
    changed = spark.read.parquet(lake.uri(changes_key(plan.folder, table.name)))
    columns = changed.select("row.*").columns
    part = plan.tables[table.name]
    if part.inserts + part.deletes and not has_written(lake, table, note, since=part.version):
        on_step(f"{table.name}: {part.deletes:,} rows out, {part.inserts:,} rows in")
        # The table may be of an earlier version.
        add_columns(lake, table, changed.select("row.*"))
        change_rows(spark, lake, table, changed, note)
    told = restatements(changed, correction.key(columns), columns, correction.time, correction.counts).select(
        F.lit(plan.number).cast("bigint").alias("repair"),
        F.lit(table.name).alias("table_name"),
        "*",
        F.lit(plan.decided_at).alias("decided_at"),
    )
    # Each table has its own writer there: tables are told of one by one.
    append_rows(told, lake, RESTATEMENTS, CommitNote(writer=f"{REPAIR} {table.name}", batch=plan.number))
