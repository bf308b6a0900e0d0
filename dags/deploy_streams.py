"""Puts a release of the jobs to work, takes it back, or stops them.

Trigger it and fill in the form. A release is built and put into the lake with its SHA-256, checked against the
checkpoints, and swapped in: the old driver finishes its batches, the new one starts. When its first good batch does not
come within five minutes the release before runs again and the run fails.

| to | choose |
|---|---|
| run what lies in this checkout | action **start** or **restart**, release *build from this checkout* |
| run an earlier release | action **restart**, and its version |
| go back to the one before | action **rollback** |
| stop | action **drain** |

When a release cannot use the checkpoints the run stops with the reason, and nothing was stopped. **Confirm reset**
begins those checkpoints anew: no row is lost, none comes twice.
"""

from datetime import timedelta

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import Param, chain, task

from ad_dags.defaults import adloom_dag
from ad_dags.tasks.care import find_unwatched
from ad_dags.tasks.deploy import ALL_JOBS, FROM_CHECKOUT, Wish, build, check, swap
from spark_jobs.contracts.releases import VERSION
from spark_jobs.queries import QUERIES_OF_JOB

with adloom_dag(
    "deploy_streams",
    __doc__,
    tag="streams",
    retries=0,
    execution_timeout=timedelta(minutes=45),
    params={
        "job": Param(
            ALL_JOBS,
            enum=[ALL_JOBS, *QUERIES_OF_JOB],
            title="Job",
            description="Which of the streaming jobs.",
        ),
        "action": Param(
            Wish.START.value,
            enum=[wish.value for wish in Wish],
            title="Action",
            description="start: if it does not run this release already; restart: in any case.",
        ),
        "release": Param(
            FROM_CHECKOUT,
            type="string",
            pattern=f"^({FROM_CHECKOUT}|{VERSION.pattern})$",
            title="Release",
            description=f"A version that is in the lake, or: {FROM_CHECKOUT}.",
        ),
        "confirm_reset": Param(
            False,
            type="boolean",
            title="Confirm reset",
            description="Begin checkpoints anew that the release cannot use.",
        ),
    },
):
    # Each takes what the one before returned, of which Airflow hands on a reference.
    version = task(build)()
    resets = task(check)(version)  # type: ignore[arg-type]
    swapped = task(swap)(version, resets)  # type: ignore[arg-type]
    unwatched = task(find_unwatched)()
    TriggerDagRunOperator.partial(task_id="supervise").expand(trigger_dag_id=unwatched)
    chain(swapped, unwatched)
