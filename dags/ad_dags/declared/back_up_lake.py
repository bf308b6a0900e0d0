"""Copies the lake to where `ADLOOM_BACKUP` says, so that `adloom restore` can make a lake of it again.

Runs daily, after the tables were maintained, while jobs keep running. What an earlier copy of the same lake left there
is not copied again. Without a place for the copy, the run is skipped: set `ADLOOM_BACKUP`, or the field `backup` of the
connection, to a folder or to `s3a://bucket/prefix`, outside of the lake.

A copy is refused while a repair, a replay, credit, a marking, an update of days or a cut of the ledger is running, so
the task tries again for half an hour. Meanwhile these are refused: the first copy of a large lake may make their tasks
fail; they go on when it is done.
A task that is killed or runs out of time leaves what it has copied, and the next run goes on from there.
"""

from datetime import timedelta

from airflow.sdk import DAG, task

from ad_dags.defaults import DagDefaults
from ad_dags.tasks.backup import back_up_lake


def declare(own: DagDefaults) -> DAG:
    """The DAG, for the lake of ``own``."""
    with own.dag(
        "back_up_lake",
        __doc__,
        tag="maintenance",
        schedule="45 5 * * *",
        retries=6,
        retry_delay=timedelta(minutes=5),
        execution_timeout=timedelta(hours=12),
    ) as dag:
        task(back_up_lake)(own.lake)
    return dag
