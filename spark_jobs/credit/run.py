"""Runs of `adloom credit`: the touches that led to each conversion, and their shares of its value.

::

    silver conversions ──due──┐
    silver/late_events ───────┼─▶ conversions to compute ⋈ gold/attributions ─▶ paths ─▶ credits
    gold/restatements ────────┘        as they are ⇄ as they should be
                                              │
                                  plan in _credits/<number> ─▶ gold/paths, gold/credits, gold/restatements

Where events are marked as invalid traffic, the same run computes credit without them, into ``gold/net_paths`` and
``gold/net_credits``: see :mod:`spark_jobs.credit.gross_and_net`.

A conversion is due when all its touches must have arrived, except late ones: see :mod:`spark_jobs.credit.due`. After
`adloom repair` has applied late events, the next run computes their conversions again: outdated rows are deleted, and
each change is recorded.

**Exactly once.** The plan, with every row to delete and to insert, lies in the lake before anything is changed; a run
that was killed is completed from it: see :mod:`spark_jobs.restatements.apply`.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.config.durations import Window
from spark_jobs.contract.tables import CREDIT_TABLES, LEFT_OUT, Table
from spark_jobs.credit.due import due_until, has_work, last_run, seen_of
from spark_jobs.credit.plan import CREDIT_PLANS, CREDIT_SEEN, CreditPlan
from spark_jobs.credit.planning import CreditPlanning
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.records import write_record
from spark_jobs.restatements.apply import Changes, OnStep, Restating, restate
from spark_jobs.restatements.compare import restatement_rows
from spark_jobs.spark.open_lake import OpenLake
from spark_jobs.spark.write_delta import create_table


def credit(
    lake: OpenLake, *, window: Window | None = None, dry_run: bool = False, on_step: OnStep = lambda _line: None
) -> CreditPlan | None:
    """Brings the paths and credits of each variant up to date. Jobs may be running.

    Args:
        lake: the lake.
        window: compute its conversions again, as after a change of ``[credit]``; None: new ones.
        dry_run: only plan; nothing is written that counts.
        on_step: called with a line of text at every step.

    Returns:
        What it found and changed; None: no conversion is due.

    Raises:
        LakeError: see :func:`spark_jobs.restatements.apply.restate`.
        LakeInUseError: another run is at work.
    """

    def plan(number: int) -> CreditPlan | None:
        reach = due_until(lake, lake.settings)
        if reach is None or not (window or has_work(lake, lake.settings)):
            return None
        planning = CreditPlanning(lake, number, last_run(lake), reach, dry_run=dry_run, on_step=on_step)
        return planning.plan(window)

    return restate(lake, _CREDIT, plan, dry_run=dry_run, on_step=on_step)


def _create_left_out(run: Restating[CreditPlan], plan: CreditPlan) -> None:
    """Where nothing is left out, the table is empty, and not one that somebody still has to write."""
    if LEFT_OUT.name in plan.tables:
        create_table(run.lake.spark, run.lake, LEFT_OUT)


def _restatements(changed: DataFrame, plan: CreditPlan, table: Table) -> DataFrame:
    """The changes of rows that had been written before."""
    again = changed.where(F.col("cause").isNotNull())
    repairs = again.select("group", "repair").distinct()
    counts = {name: name for name in table.column_names if name == "campaign_id"}
    rows = restatement_rows(again, table.key, table.column_names, "conversion_time", counts)
    rows = rows.join(repairs, on="group", how="inner").drop("group")
    return rows.withColumns({"table_name": F.lit(table.name), "decided_at": F.lit(plan.decided_at)})


def _remember(lake: Lake, plan: CreditPlan) -> None:
    if not plan.is_window:
        write_record(lake, CREDIT_SEEN, seen_of(plan.reach, waits=plan.waiting > 0))


_CREDIT = Changes(
    CREDIT_PLANS, CREDIT_TABLES, _restatements, before=_create_left_out, after=_remember, is_appended=True
)
