"""Brings events that came too late to gold, and records every change in `gold/restatements`.

Runs hourly. It looks at what was read since the last repair, recomputes the rows that late events touch, and changes
these rows, each once. Jobs keep running: nothing live reads a late event, and rows that the live queries may still
change wait for the next repair. With **dry run** it only lists what it would change. The task's log has a table: how
many events were late for each table, how many wait, and how many rows were changed.

The next run resumes a repair that was killed. How late an event may be and which rows are final is set in `[repair]`.
"""

from airflow.sdk import DAG, Param

from ad_dags.commands import run_adloom
from ad_dags.connection.lake_connection import connect_started
from ad_dags.connection.lakes import LakeRef
from ad_dags.defaults import DagDefaults
from ad_dags.forms import Form, form_task, options


def declare(own: DagDefaults) -> DAG:
    """The DAG, for the lake of ``own``."""
    with own.dag(
        "repair_late",
        __doc__,
        tag="maintenance",
        schedule="20 * * * *",
        params={
            "dry_run": Param(False, type="boolean", title="Dry run", description="Only list what would be changed."),
        },
    ) as dag:
        form_task(repair_late, pool=own.pool)(own.lake)
    return dag


def repair_late(lake: LakeRef, params: Form) -> str:
    """Brings late events to gold; if ``params["dry_run"]``, only lists what would change."""
    _, output = run_adloom(connect_started(lake), ["repair"], options(params, "dry_run"), changes_lake=True)
    return output
