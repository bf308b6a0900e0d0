"""Compacts small files of the tables, and vacuums files that no reader needs any more.

Runs daily, one job after the other: the job is stopped, the tables that it writes are compacted and vacuumed, and it is
started again, because a table has one writer at a time. If the task dies, the job runs again within an hour. The tables
of `adloom credit` and `adloom marks` come last, while all jobs run.
"""

from airflow.sdk import DAG, chain, task

from ad_dags.defaults import DagDefaults
from ad_dags.tasks.maintenance import maintain_derived, maintain_tables
from spark_jobs.queries import QUERIES_OF_JOB


def declare(own: DagDefaults) -> DAG:
    """The DAG, for the lake of ``own``."""
    with own.dag("maintain_tables", __doc__, tag="maintenance", schedule="0 4 * * *") as dag:
        tasks = {job: task(task_id=f"maintain_{job}", pool=own.pool) for job in QUERIES_OF_JOB}
        of_jobs = [maintaining(maintain_tables)(own.lake, job) for job, maintaining in tasks.items()]
        chain(*of_jobs, task(pool=own.pool)(maintain_derived)(own.lake))
    return dag
