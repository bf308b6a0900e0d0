"""Checks what is new in the tables against the expectations and publishes the report.

Every hour. A critical expectation that fails fails the run; a warning is told in the log and in the report. The report
and its history lie in the lake under `_reports/`.
"""

from airflow.sdk import task

from ad_dags.defaults import adloom_dag
from ad_dags.tasks.care import validate_tables

with adloom_dag(
    "validate_tables",
    __doc__,
    tag="quality",
    schedule="15 * * * *",
    retries=1,
):
    task(validate_tables)()
