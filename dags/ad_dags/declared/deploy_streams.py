"""Deploys a release of the streaming jobs, rolls it back, or stops the jobs.

Trigger it and fill in the form. A release is the code and the settings file. It is built, stored in the lake with its
SHA-256, checked against the checkpoints and the contract, and swapped in: the old driver finishes its batches and
stops, then the new one starts. If the new release does not complete a batch within five minutes, the previous one is
started again and the run fails. The log of the task **check** has a line for each setting that changes.

| to | choose |
|---|---|
| run this checkout and the settings file | action **start** or **restart**, release *build from this checkout* |
| run an earlier release | action **restart**, and its version |
| return to the previous release, code and settings | action **rollback** |
| stop | action **stop** |

A stop loses nothing and closes nothing: the next start continues where the job stopped.

If a release cannot use the checkpoints, the run fails with the reason before anything is stopped. **Confirm reset**
rebuilds those checkpoints: no row is lost or repeated.

The contract of the release and its settings is compared with the one that the lake is in use with. The log shows every
difference. If one is breaking, the run fails before anything is stopped, unless **confirm breaking contract** is set
and `contract.version` has a new major.
"""

from datetime import timedelta

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import DAG, Param, chain, task

from ad_dags.defaults import DagDefaults
from ad_dags.tasks.deploy import ALL_JOBS, FROM_CHECKOUT, DeployAction, build, check, swap
from ad_dags.tasks.reconcile import find_unwatched
from spark_jobs.contracts.releases import VERSION
from spark_jobs.queries import QUERIES_OF_JOB


def declare(own: DagDefaults) -> DAG:
    """The DAG, for the lake of ``own``."""
    with own.dag(
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
                description="The streaming job, or all of them.",
            ),
            "action": Param(
                DeployAction.START.value,
                enum=[action.value for action in DeployAction],
                title="Action",
                description=(
                    "start: unless this release is already running; stop: after the running batches, nothing is lost; "
                    "restart: in any case; rollback: to the previous release."
                ),
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
                description="Reset checkpoints that the release cannot use.",
            ),
            "confirm_breaking": Param(
                False,
                type="boolean",
                title="Confirm breaking contract",
                description="Deploy although the contract changes in a way that breaks producers or consumers.",
            ),
        },
    ) as dag:
        # At run time each task gets the result of the one before; here Airflow passes a reference to it.
        version = task(build)(own.lake)
        resets = task(check)(own.lake, version)  # type: ignore[arg-type]
        swapped = task(swap)(own.lake, version, resets)  # type: ignore[arg-type]
        unwatched = task(find_unwatched)(own.lake)
        TriggerDagRunOperator.partial(task_id="supervise").expand(trigger_dag_id=unwatched)
        chain(swapped, unwatched)
    return dag
