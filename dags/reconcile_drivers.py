"""Repairs what nobody watches over.

Every few minutes: a job that is wanted, and that no task of `supervise_<job>` has looked at for two minutes, is looked
after, and its supervising DAG is started. So a triggerer or scheduler that died costs minutes of watching, and no job.
"""

from datetime import timedelta

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import DAG, task

from ad_dags.defaults import BEGIN, task_defaults
from ad_dags.tasks.care import find_unwatched

with DAG(
    "reconcile_drivers",
    description=(__doc__ or "").partition("\n")[0],
    doc_md=__doc__,
    start_date=BEGIN,
    schedule=timedelta(minutes=3),
    catchup=False,
    max_active_runs=1,
    tags=["adloom", "streams"],
    default_args=task_defaults(retries=1, execution_timeout=timedelta(minutes=5)),
):
    TriggerDagRunOperator.partial(task_id="supervise").expand(trigger_dag_id=task(find_unwatched)())
