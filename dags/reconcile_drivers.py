"""Repairs what nobody watches over.

Every few minutes: a job that is wanted, and that no task of `supervise_<job>` has looked at for two minutes, is looked
after, and its supervising DAG is started. So a triggerer or scheduler that died costs minutes of watching, and no job.
"""

from datetime import timedelta

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import task

from ad_dags.defaults import adloom_dag
from ad_dags.tasks.care import find_unwatched

with adloom_dag(
    "reconcile_drivers",
    __doc__,
    tag="streams",
    schedule=timedelta(minutes=3),
    retries=1,
    execution_timeout=timedelta(minutes=5),
):
    TriggerDagRunOperator.partial(task_id="supervise").expand(trigger_dag_id=task(find_unwatched)())
