"""Removes superseded checkpoints.

Runs daily. Trigger it with **dry run** to see what it would remove. A checkpoint is removed once its query has used a
newer one for `job.checkpoint_retention`; one that is in use stays. The task's log says what was removed, what stayed,
and why.
"""

from airflow.sdk import DAG, Param, task

from ad_dags.defaults import DagDefaults
from ad_dags.tasks.maintenance import clean_checkpoints


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
        task(clean_checkpoints)(own.lake)
    return dag
