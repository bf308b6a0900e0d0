"""Checks what is new in the tables against the expectations and publishes the report.

Every hour. A critical expectation that fails fails the run; a warning is told in the log and in the report. The report
and its history lie in the lake under `_reports/`.
"""

from airflow.sdk import DAG, task

from ad_dags.defaults import BEGIN, task_defaults
from ad_dags.tasks.care import validate_tables

with DAG(
    "validate_tables",
    description=(__doc__ or "").partition("\n")[0],
    doc_md=__doc__,
    start_date=BEGIN,
    schedule="15 * * * *",
    catchup=False,
    max_active_runs=1,
    tags=["adloom", "quality"],
    default_args=task_defaults(retries=1),
):
    task(validate_tables)()
