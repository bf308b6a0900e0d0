"""Compacts small files of the tables, and vacuums files that no reader needs any more.

Runs daily, one job after the other: the job is stopped, the tables that it writes are compacted and vacuumed, and it is
started again, because a table has one writer at a time. If the task dies, the job runs again within an hour.
"""

from airflow.sdk import chain, task

from ad_dags.defaults import adloom_dag, spark_pool
from ad_dags.tasks.maintenance import maintain_tables
from spark_jobs.queries import QUERIES_OF_JOB

with adloom_dag(
    "maintain_tables",
    __doc__,
    tag="maintenance",
    schedule="0 4 * * *",
):
    chain(*(task(task_id=f"maintain_{job}", pool=spark_pool())(maintain_tables)(job) for job in QUERIES_OF_JOB))
