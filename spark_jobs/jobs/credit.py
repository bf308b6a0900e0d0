"""Conversions get their credit: which touches led to each, and how they share its value.

::

    silver conversions ──due──┐
    silver/late_events ───────┼─▶ conversions to compute ⋈ gold/attributions ─▶ paths ─▶ credits
    gold/restatements ────────┘        as they are ⇄ as they should be
                                              │
                                  plan in _credits/<number> ─▶ gold/paths, gold/credits, gold/restatements

Where events are marked as invalid traffic, the same run computes credit without them, into ``gold/net_paths`` and
``gold/net_credits``: see :mod:`spark_jobs.jobs.credit_variants`.

A conversion is due when no touch of it can come in time any more: see :mod:`spark_jobs.jobs.credit_reach`. What comes
late goes through `adloom repair` first, and is computed again by the next run: stale rows go, and each change is told.

**Exactly once.** The plan, with every row to delete and to insert, lies in the lake before anything is changed. Each
commit bears the number of the run. A run that was killed goes on from its plan.
"""

import logging
from collections.abc import Callable

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_jobs.contracts.crediting import (
    CREDIT,
    CREDIT_SEEN,
    CreditDone,
    CreditPlan,
    credit_changes_key,
    credit_done_key,
    credit_plan_key,
    run_key,
)
from spark_jobs.contracts.errors import LakeError
from spark_jobs.contracts.replay import Window
from spark_jobs.contracts.settings import Settings
from spark_jobs.contracts.tables import CREDIT_TABLES, RESTATEMENTS, Table
from spark_jobs.jobs.changing import change_rows
from spark_jobs.jobs.credit_plan import CreditPlanning
from spark_jobs.jobs.credit_reach import has_work, is_done, last_run, newest_run, reach_of, seen_of
from spark_jobs.lake.commits import CommitNote
from spark_jobs.lake.layout import Lake
from spark_jobs.runtime.lock import Check, hold_job
from spark_jobs.runtime.records import write_record
from spark_jobs.sinks.delta import append_rows
from spark_jobs.sinks.rewriting import RowsChangedError, has_written
from spark_jobs.transforms.changes import rows_of, told

_ATTEMPTS = 5
_log = logging.getLogger(__name__)
OnStep = Callable[[str], None]


def credit(
    spark: SparkSession,
    settings: Settings,
    lake: Lake,
    *,
    window: Window | None = None,
    dry_run: bool = False,
    on_step: OnStep = lambda _line: None,
) -> CreditPlan | None:
    """Brings the paths and credits of each variant up to date. Jobs may be running.

    Args:
        spark: the session.
        settings: those of the live jobs.
        lake: the lake.
        window: compute the conversions in it again, as after a change of ``[credit]``; None: what is new.
        dry_run: only plan; nothing is written that counts.
        on_step: called with a line of text at every step.

    Returns:
        What it found and changed; None: no conversion is due.

    Raises:
        LakeError: a table was changed in each attempt, or another process has planned this run meanwhile.
        LakeInUseError: another run is at work.
    """
    with hold_job(lake, CREDIT, settings.s3, spark=spark) as check_lock:
        for _ in range(_ATTEMPTS):
            number = _finish_interrupted(spark, lake, check_lock, on_step) + 1
            reach = reach_of(lake, settings)
            if reach is None or not (window or has_work(lake, settings)):
                return None
            planning = CreditPlanning(
                spark, settings, lake, number, last_run(lake), reach, dry_run=dry_run, on_step=on_step
            )
            plan = planning.plan(window)
            if dry_run:
                return plan
            check_lock()
            if _apply(spark, lake, plan, check_lock, on_step):
                if not window:
                    write_record(lake, CREDIT_SEEN, seen_of(reach, waits=plan.waiting > 0))
                return plan
    raise LakeError(
        f"{' and '.join(table.path for table in CREDIT_TABLES)} of {lake.root} were changed during each of {_ATTEMPTS} "
        "attempts to write them; is somebody else writing to them? Only `adloom credit` may"
    )


def _finish_interrupted(spark: SparkSession, lake: Lake, check_lock: Check, on_step: OnStep) -> int:
    """Completes the run that was killed after it had planned. Returns the newest number."""
    begun = newest_run(lake)
    if begun is None:
        return 0
    if not is_done(lake, begun):
        on_step(f"run {begun.number} was interrupted: going on with it")
        _apply(spark, lake, begun, check_lock, on_step)
    return begun.number


def _apply(spark: SparkSession, lake: Lake, plan: CreditPlan, check_lock: Check, on_step: OnStep) -> bool:
    """Does what is planned, as far as it has not been done yet. Returns whether no row had been changed meanwhile."""
    failed = []
    for table in CREDIT_TABLES:
        if table.name not in plan.tables:
            continue
        check_lock()
        try:
            _change(spark, lake, plan, table, on_step)
        except RowsChangedError as error:
            _log.warning("%s; it is planned anew", error)
            failed.append(table.name)
    lake.files.write(credit_done_key(plan.number), CreditDone(failed=tuple(failed)).model_dump_json().encode())
    kept = (credit_plan_key(plan.number), credit_done_key(plan.number))
    for name in lake.files.names(run_key(plan.number)):
        if (key := f"{run_key(plan.number)}/{name}") not in kept:
            # Rows that were planned are in the tables now; those of other drafts never counted.
            lake.files.delete_folder(key)
    return not failed


def _change(spark: SparkSession, lake: Lake, plan: CreditPlan, table: Table, on_step: OnStep) -> None:
    """Changes one table, and tells what was changed after it had been written."""
    part, note = plan.tables[table.name], CommitNote(writer=CREDIT, batch=plan.number)
    changed = spark.read.parquet(lake.uri(credit_changes_key(plan.folder, table.name)))
    if part.inserts + part.deletes and not has_written(lake, table, note, since=part.version):
        on_step(f"{table.name}: {part.deletes:,} rows out, {part.inserts:,} rows in")
        if part.deletes:
            change_rows(spark, lake, table, changed, note)
        else:
            append_rows(rows_of(changed, inserted=True), lake, table, note)
    again = changed.where(F.col("cause").isNotNull())
    repairs = again.select("group", "repair").distinct()
    counts = {name: name for name in table.column_names if name == "campaign_id"}
    rows = told(again, table.key, table.column_names, "conversion_time", counts)
    rows = rows.join(repairs, on="group", how="inner").drop("group")
    rows = rows.withColumns({"table_name": F.lit(table.name), "decided_at": F.lit(plan.decided_at)})
    append_rows(rows, lake, RESTATEMENTS, CommitNote(writer=f"{CREDIT} {table.name}", batch=plan.number))
