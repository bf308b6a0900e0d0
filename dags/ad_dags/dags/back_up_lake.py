"""Copies the lake to where `ADLOOM_BACKUP` says, so that `adloom restore` can make a lake of it again.

Runs daily, after the tables were maintained, while jobs keep running. What an earlier copy of the same lake left there
is not copied again. Without a place for the copy, the run is skipped: set `ADLOOM_BACKUP`, or the field `backup` of the
connection, to a folder or to `s3a://bucket/prefix`, outside of the lake.

A copy is refused while a repair, a replay, credit, a marking, or an update of days or of the ledger is running, so
the task tries again for half an hour. During a copy these are refused in turn: the first copy of a large lake may make
their tasks fail; they resume when it is done. A task that is killed or runs out of time leaves what it has copied, and
the next run continues from there.
"""

from datetime import timedelta

from airflow.sdk import DAG, task
from airflow.sdk.exceptions import AirflowSkipException

from ad_dags.commands import run_adloom
from ad_dags.connection.lake_connection import connect_started
from ad_dags.connection.lakes import LakeRef
from ad_dags.defaults import DagDefaults

_TARGET = "ADLOOM_BACKUP"
"""Where copies go."""


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


def back_up_lake(lake: LakeRef) -> str:
    """Copies the lake to where its connection or the environment says."""
    connection = connect_started(lake)
    target = connection.environment.get(_TARGET)
    if not target:
        raise AirflowSkipException(
            f"nothing says where to copy {connection.lake.root} to; set {_TARGET}, or the field backup of the "
            "connection, to a folder or s3a://bucket/prefix"
        )
    # Airflow's own keys may only read the lake, and should not be able to change copies either.
    _, output = run_adloom(connection, ["backup", target], changes_lake=True)
    return output
