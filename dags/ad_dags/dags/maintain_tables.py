"""Compacts small files of the tables, and vacuums files that no reader still needs.

Runs daily, one job after the other: the job is stopped, the tables that it writes are compacted and vacuumed, and it is
started again, because a table has one writer at a time. If the task dies, the job runs again within an hour. The tables
of `adloom credit` and `adloom marks` come last, while all jobs run.
"""

from airflow.sdk import DAG, chain, task

from ad_dags.commands import run_adloom
from ad_dags.connection.lake_connection import connect_started
from ad_dags.connection.lakes import LakeRef
from ad_dags.defaults import DagDefaults
from ad_dags.drivers.job_control import paused
from spark_jobs.queries.registry import MAINTAINED_TABLES, QUERIES_OF_JOB, TABLES_BY_NAME, queries_of


def declare(own: DagDefaults) -> DAG:
    """The DAG, for the lake of ``own``."""
    with own.dag("maintain_tables", __doc__, tag="maintenance", schedule="0 4 * * *") as dag:
        tasks = {job: task(task_id=f"maintain_{job}", pool=own.pool) for job in QUERIES_OF_JOB}
        of_jobs = [maintaining(maintain_tables)(own.lake, job) for job, maintaining in tasks.items()]
        chain(*of_jobs, task(pool=own.pool)(maintain_derived)(own.lake))
    return dag


def maintain_tables(lake: LakeRef, job: str) -> str:
    """Compacts and vacuums the tables that ``job`` writes while the job is paused, then resumes it.

    A table has one writer at a time, so the job is stopped first. It is resumed however this ends.
    """
    connection = connect_started(lake)
    tables = [query.writes.name for query in queries_of(job)]
    with paused(connection, job, "table maintenance"):
        _, output = run_adloom(connection, ["maintain", *tables], changes_lake=True)
    return output


def maintain_derived(lake: LakeRef) -> str:
    """Compacts and vacuums the tables that no job writes, but commands of their own: all jobs keep running."""
    tables = [name for name in MAINTAINED_TABLES if name not in TABLES_BY_NAME]
    _, output = run_adloom(connect_started(lake), ["maintain", *tables], changes_lake=True)
    return output
