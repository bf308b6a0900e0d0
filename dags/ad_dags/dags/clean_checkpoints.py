"""Removes superseded checkpoints.

Runs daily. Trigger it with **dry run** to see what it would remove. A checkpoint is removed once its query has used a
newer one for `job.checkpoint_retention`; one that is in use stays. Jobs may run. The task's log says what was removed,
what stayed, and why.
"""

from airflow.sdk import DAG, Param

from ad_dags.commands import run_adloom
from ad_dags.connection.lake_connection import connect_started
from ad_dags.connection.lakes import LakeRef
from ad_dags.defaults import DagDefaults
from ad_dags.forms import Form, form_task


def declare(own: DagDefaults) -> DAG:
    """The DAG, for the lake of ``own``."""
    with own.dag(
        "clean_checkpoints",
        __doc__,
        tag="maintenance",
        schedule="30 3 * * *",
        params={
            "dry_run": Param(False, type="boolean", title="Dry run", description="Only list what would be removed."),
            "checkpoints": Param(
                [],
                type="array",
                title="Checkpoints",
                description="Only these, one per line, as in attribute/sessionize/v1. Empty: all that can be removed.",
                items={"type": "string", "pattern": "^[a-z]+/[a-z_]+/v[1-9][0-9]{0,8}$"},
            ),
        },
    ) as dag:
        form_task(clean_checkpoints)(own.lake)
    return dag


def clean_checkpoints(lake: LakeRef, params: Form) -> str:
    """Removes superseded checkpoints, or those in ``params["checkpoints"]``; if ``dry_run``, only lists them."""
    connection, delete = connect_started(lake), [] if params["dry_run"] else ["--delete"]
    _, output = run_adloom(connection, ["checkpoints", "clean", *params["checkpoints"]], delete, changes_lake=True)
    return output
