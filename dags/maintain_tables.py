"""Puts small files of the tables together and removes those that nobody needs any more.

Every day, one job after the other: the job is drained, the tables that it writes are compacted and vacuumed, and it
runs again; a table has one writer at a time. Should the task die, the job runs again after an hour.
"""

from airflow.sdk import DAG, chain, task

from ad_dags.defaults import BEGIN, task_defaults
from ad_dags.tasks.care import maintain_tables

with DAG(
    "maintain_tables",
    description=(__doc__ or "").partition("\n")[0],
    doc_md=__doc__,
    start_date=BEGIN,
    schedule="0 4 * * *",
    catchup=False,
    max_active_runs=1,
    tags=["adloom", "care"],
    default_args=task_defaults(),
):
    chain(*(task(task_id=f"maintain_{job}")(maintain_tables)(job) for job in ("deduplicate", "attribute")))
