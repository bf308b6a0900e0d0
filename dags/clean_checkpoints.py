"""Removes checkpoints that others have taken the place of.

Every day; by hand with **dry run** to see what would go. A checkpoint goes when its query has used a newer one for
`job.checkpoint_retention`; one that is in use stays. The log of the task tells what went, what stayed, and why.
"""

from airflow.sdk import Param, task

from ad_dags.defaults import adloom_dag
from ad_dags.tasks.care import clean_checkpoints

with adloom_dag(
    "clean_checkpoints",
    __doc__,
    tag="care",
    schedule="30 3 * * *",
    params={
        "dry_run": Param(False, type="boolean", title="Dry run", description="Only tell what would go."),
        "checkpoints": Param(
            [],
            type="array",
            title="Checkpoints",
            description="Only these, one a line, as in attribute/sessionize/v1; none: all that may go.",
            items={"type": "string", "pattern": "^[a-z]+/[a-z_]+/v[1-9][0-9]{0,8}$"},
        ),
    },
):
    task(clean_checkpoints)()
