"""Keeps the job `attribute` running.

Joins clicks to impressions, and groups users' events into sessions, from silver.
"""

from ad_dags.defaults import BEGIN, task_defaults
from ad_dags.operators.supervise import HOW_TO, SuperviseDriverOperator
from airflow.sdk import DAG

with DAG(
    "supervise_attribute",
    description=(__doc__ or "").partition("\n")[0],
    doc_md=f"{__doc__}{HOW_TO}",
    start_date=BEGIN,
    schedule=None,
    catchup=False,
    max_active_runs=1,
    tags=["adloom", "streams"],
    default_args=task_defaults(retries=0, execution_timeout=None),
):
    SuperviseDriverOperator(task_id="supervise", job="attribute")
