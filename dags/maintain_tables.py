"""Puts small files of the tables together and removes those that nobody needs any more.

Every day, one job after the other: the job is drained, the tables that it writes are compacted and vacuumed, and it
runs again; a table has one writer at a time. Should the task die, the job runs again after an hour.
"""

from airflow.sdk import chain, task

from ad_dags.defaults import adloom_dag
from ad_dags.tasks.care import maintain_tables
from spark_jobs.queries import QUERIES_OF_JOB

with adloom_dag(
    "maintain_tables",
    __doc__,
    tag="care",
    schedule="0 4 * * *",
):
    chain(*(task(task_id=f"maintain_{job}")(maintain_tables)(job) for job in QUERIES_OF_JOB))
