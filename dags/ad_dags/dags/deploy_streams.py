"""Deploys a release of the streaming jobs, rolls it back, or stops the jobs.

Trigger it and fill in the form. A release is the code and the settings file. It is built, stored in the lake with its
SHA-256, checked against the checkpoints and the contract, and swapped in: the old driver finishes its batches and
stops, then the new one starts. If the new release fails, or makes no progress with its first batches for five minutes,
the previous one is started again and the run fails. The log of the task **check** has a line for each setting that
changes.

| to | choose |
|---|---|
| run this checkout and the settings file | action **start** or **restart**, release *build from this checkout* |
| run an earlier release | action **restart**, and its version |
| return to the previous release, code and settings | action **rollback** |
| stop | action **stop** |

A stop loses nothing and closes nothing: the next start continues where the job stopped.

If a release cannot use the checkpoints, the run fails with the reason before anything is stopped. **Confirm reset**
rebuilds those checkpoints: no row is lost or repeated.

The contract of the release and its settings is compared with the one in use in the lake. The log shows every
difference. If one is breaking, the run fails before anything is stopped, unless **confirm breaking contract** is set
and `contract.version` has a new major.
"""

import logging
import tempfile
from collections import defaultdict
from datetime import timedelta
from pathlib import Path

from airflow.sdk import DAG, Param, chain

from ad_dags.clock import utc_now
from ad_dags.connection.lake_connection import checkout, connect, jobs_here
from ad_dags.connection.lakes import LakeRef
from ad_dags.dags.reconcile_drivers import have_watched
from ad_dags.defaults import DagDefaults
from ad_dags.drivers.compatibility import check_checkpoints, check_contract, log_setting_changes
from ad_dags.drivers.supervision.rules import Limits
from ad_dags.drivers.swap import DeployAction, swap_one
from ad_dags.forms import Form, form_task
from spark_jobs.operations.build_wheel import build_wheel
from spark_jobs.operations.release import VERSION
from spark_jobs.operations.releases import publish, read_release, release_before
from spark_jobs.queries.registry import QUERIES_OF_JOB

FROM_CHECKOUT = "build from this checkout"
ALL_JOBS = "all"
_log = logging.getLogger(__name__)


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
        version = form_task(build)(own.lake)
        resets = form_task(check)(own.lake, version)
        swapped = form_task(swap)(own.lake, version, resets, limits=own.limits.numbers())
        chain(swapped, have_watched(own))
    return dag


def jobs_of(lake: LakeRef, params: Form) -> list[str]:
    """The jobs that the form means: upstream jobs first, and last when jobs are stopped.

    Raises:
        SettingsError: ADLOOM_JOBS names a job that does not exist.
    """
    is_stop = params["action"] == DeployAction.STOP
    jobs = [params["job"]]
    if params["job"] == ALL_JOBS:
        # ADLOOM_JOBS limits what is started. Whatever is running can be stopped.
        jobs = list(QUERIES_OF_JOB) if is_stop else jobs_here(lake)
    return jobs[::-1] if is_stop else jobs


def build(lake: LakeRef, params: Form) -> str:
    """The version to deploy: built from the checkout and the settings file, or as named in the form.

    It is empty if the action needs none.

    Raises:
        LakeError: there is no such release.
        SettingsError: the settings file holds a secret.
    """
    connection, action = connect(lake), DeployAction(params["action"])
    if action in (DeployAction.STOP, DeployAction.ROLLBACK):
        return ""
    if params["release"] != FROM_CHECKOUT:
        return read_release(connection.lake, params["release"]).version
    with tempfile.TemporaryDirectory() as folder:
        wheel, version = build_wheel(checkout(), Path(folder), connection.config)
        release = publish(connection.lake, wheel, version, utc_now())
    _log.info("release %s, SHA-256 %s", release.version, release.sha256)
    return release.version


def check(lake: LakeRef, version: str, params: Form) -> list[str]:
    """The queries of the form's jobs whose checkpoints cannot be used by ``version``, or by what a rollback returns to.

    Logs which settings change.

    Raises:
        CheckpointError: there are some, and the form did not confirm a reset of these checkpoints.
        ContractError: the contract changes in a breaking way, which the form did not confirm or the version hides. A
            rollback is not asked: it returns to what was promised before.
        CommandError: the checkpoints or the contracts could not be compared.
        LakeError: there is no such release, or nothing to roll back to.
    """
    if params["action"] == DeployAction.STOP:
        return []
    connection, jobs_by_version = connect(lake), defaultdict[str, list[str]](list)
    for job in jobs_of(lake, params):
        jobs_by_version[version or release_before(connection.lake, job)].append(job)
    for own, jobs in jobs_by_version.items():
        log_setting_changes(connection, jobs, own)
    queries = [
        query
        for own, jobs in jobs_by_version.items()
        for query in check_checkpoints(connection, own, jobs, is_confirmed=params["confirm_reset"])
    ]
    if version:
        check_contract(connection, version, is_confirmed=params["confirm_breaking"])
    return queries


def swap(
    lake: LakeRef, version: str, resets: list[str], params: Form, limits: dict[str, float] | None = None
) -> list[str]:
    """Performs the form's action, job by job. Returns one line per job on what is running now.

    Raises:
        DeployError: a checkpoint could not be reset, or a new release did not complete a batch. The text says what is
            running now: the previous release, if there is one.
    """
    connection, action = connect(lake), DeployAction(params["action"])
    patience = Limits.of(limits or {})
    return [swap_one(connection, job, action, version, resets, patience) for job in jobs_of(lake, params)]
