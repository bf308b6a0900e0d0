"""Recomputes a random past day of gold from bronze each night, and fails if a row differs that nothing explains.

The day is one that all queries have passed, drawn by the date of the run, so that a retry takes the same one. Nothing
is changed. The task's log says which day it was and how many rows of each table are the same, late, open or unknown;
the report is in the lake under `_reports/replays/`, as JSON and as a page.

A failure is an alarm: somebody changed a table, or adloom has a bug. The runbook says what to do: *A replay finds rows
that nothing explains*.
"""

from airflow.sdk import DAG, task

from ad_dags.defaults import DagDefaults
from ad_dags.tasks.replay import audit_random_day


def declare(own: DagDefaults) -> DAG:
    """The DAG, for the lake of ``own``."""
    with own.dag("replay_audit", __doc__, tag="quality", schedule="30 3 * * *") as dag:
        task(pool=own.pool)(audit_random_day)(own.lake)
    return dag
