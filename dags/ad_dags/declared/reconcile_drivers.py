"""Picks up jobs that nobody watches.

Every few minutes it looks for jobs that are wanted and that no task of `supervise_<job>` has looked at for two minutes.
It looks after each of them once and starts its supervising DAG. If the triggerer or the scheduler dies, the jobs keep
running and are unwatched for a few minutes only.
"""

from datetime import timedelta

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import DAG, task

from ad_dags.defaults import DagDefaults
from ad_dags.tasks.reconcile import find_unwatched


def declare(own: DagDefaults) -> DAG:
    """The DAG, for the lake of ``own``."""
    with own.dag(
        "reconcile_drivers",
        __doc__,
        tag="streams",
        schedule=timedelta(minutes=3),
        retries=1,
        execution_timeout=timedelta(minutes=5),
    ) as dag:
        TriggerDagRunOperator.partial(task_id="supervise").expand(trigger_dag_id=task(find_unwatched)(own.lake))
    return dag
