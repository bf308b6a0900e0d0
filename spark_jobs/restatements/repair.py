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

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import LATE_EVENTS, Table
from spark_jobs.lake.layout import Lake
from spark_jobs.places import REPAIR
from spark_jobs.queries.registry import QUERIES, writer_of
from spark_jobs.restatements.apply import Changes, OnStep, Restating, restate
from spark_jobs.restatements.compare import restatements
from spark_jobs.restatements.plan import RepairPlan, late_key
from spark_jobs.restatements.plans import GOLD_PLANS
from spark_jobs.restatements.repair_plan import make_plan


def repair(
    spark: SparkSession,
    settings: Settings,
    lake: Lake,
    *,
    dry_run: bool = False,
    on_step: OnStep = lambda _line: None,
) -> RepairPlan | None:
    """Corrects gold to what it would be if no event had been late.

    Rows that the live queries may still change are left for the next repair. Jobs may be running. A killed repair is
    completed first.

    Args:
        spark: the session.
        settings: those of the live jobs.
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
        return make_plan(spark, settings, lake, number, dry_run=dry_run, on_step=on_step)

    return restate(spark, lake, settings.s3, GOLD, plan, dry_run=dry_run, on_step=on_step)


def _keep_late(run: Restating[RepairPlan], plan: RepairPlan) -> None:
    """Appends the events that were too late for silver to ``silver/late_events``."""
    if plan.late_events:
        run.on_step(f"{plan.late_events:,} late events into {LATE_EVENTS.path}")
        rows = run.spark.read.parquet(run.lake.uri(late_key(plan.folder)))
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
