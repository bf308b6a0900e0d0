"""Deploying a release: build it, check it against the checkpoints, swap it in, and roll back if it does not work."""

import logging
import tempfile
import time
from collections import defaultdict
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

from ad_dags.clock import utc_now
from ad_dags.job_control import is_wanted, paused, stop, stop_and_wait
from ad_dags.lakes import LakeRef
from ad_dags.launchers import DriverState, LauncherError
from ad_dags.place import Place, checkout, find_place, jobs_here
from ad_dags.programs import CommandError
from ad_dags.tasks.compatibility import (
    check_checkpoints,
    check_contract,
    log_setting_changes,
    reset,
    unusable,
)
from spark_jobs.contracts.errors import AdloomError
from spark_jobs.contracts.progress import QueryReport, QueryState
from spark_jobs.contracts.releases import Deployment
from spark_jobs.contracts.wanted import WantedState
from spark_jobs.queries import JOB_OF_QUERY, QUERIES_OF_JOB, find_query
from spark_jobs.runtime.building import build_wheel
from spark_jobs.runtime.releases import (
    deploy,
    publish,
    read_deployment,
    read_release,
    release_before,
    write_deployment,
)
from spark_jobs.runtime.reports import read_reports
from spark_jobs.runtime.wanted import read_wanted, want

FROM_CHECKOUT = "build from this checkout"
ALL_JOBS = "all"
_FIRST_BATCH = timedelta(minutes=5)
"""How long a new release may take to complete its first batch."""
_POLL_S = 1.0
_FAILURES = (AdloomError, LauncherError, CommandError, OSError)
_log = logging.getLogger(__name__)


class DeployAction(StrEnum):
    """The actions that the form offers."""

    START = "start"
    STOP = "stop"
    RESTART = "restart"
    ROLLBACK = "rollback"


class DeployError(Exception):
    """Raised when a release was not deployed; the text says why, and what is running now."""


def jobs_of(lake: LakeRef, params: dict[str, Any]) -> list[str]:
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


def build(lake: LakeRef, params: dict[str, Any] | None = None) -> str:
    """The version to deploy: built from the checkout and the settings file, or as named in the form.

    It is empty if the action needs none.

    Raises:
        LakeError: there is no such release.
        SettingsError: the settings file holds a secret.
    """
    assert params is not None  # noqa: S101 Airflow passes it
    place, action = find_place(lake), DeployAction(params["action"])
    if action in (DeployAction.STOP, DeployAction.ROLLBACK):
        return ""
    if params["release"] != FROM_CHECKOUT:
        return read_release(place.lake, params["release"]).version
    with tempfile.TemporaryDirectory() as folder:
        wheel, version = build_wheel(checkout(), Path(folder), place.config)
        release = publish(place.lake, wheel, version, utc_now())
    _log.info("release %s, SHA-256 %s", release.version, release.sha256)
    return release.version


def check(lake: LakeRef, version: str, params: dict[str, Any] | None = None) -> list[str]:
    """The queries of the form's jobs whose checkpoints cannot be used by ``version``, or by what a rollback returns to.

    Logs which settings change.

    Raises:
        CheckpointError: there are some, and the form did not confirm a reset of these checkpoints.
        ContractError: the contract changes in a breaking way, which the form did not confirm or the version hides. A
            rollback is not asked: it returns to what was promised before.
        CommandError: the checkpoints or the contracts could not be compared.
        LakeError: there is no such release, or nothing to roll back to.
    """
    assert params is not None  # noqa: S101
    if params["action"] == DeployAction.STOP:
        return []
    place, jobs_by_version = find_place(lake), defaultdict[str, list[str]](list)
    for job in jobs_of(lake, params):
        jobs_by_version[version or release_before(place.lake, job)].append(job)
    for own, jobs in jobs_by_version.items():
        log_setting_changes(place, jobs, own)
    queries = [
        query
        for own, jobs in jobs_by_version.items()
        for query in check_checkpoints(place, own, jobs, is_confirmed=params["confirm_reset"])
    ]
    if version:
        check_contract(place, version, is_confirmed=params["confirm_breaking"])
    return queries


def swap(lake: LakeRef, version: str, resets: list[str], params: dict[str, Any] | None = None) -> list[str]:
    """Performs the form's action, job by job. Returns one line per job on what is running now.

    Raises:
        DeployError: a checkpoint could not be reset, or a new release did not complete a batch. The text says what is
            running now: the previous release, if there is one.
    """
    assert params is not None  # noqa: S101
    place, action = find_place(lake), DeployAction(params["action"])
    return [_swap_one(place, job, action, version, resets) for job in jobs_of(lake, params)]


def _swap_one(place: Place, job: str, action: DeployAction, version: str, resets: list[str]) -> str:
    now = utc_now()
    if action is DeployAction.STOP:
        stop(place.lake, place.launcher, job, "deploy_streams, action stop", now)
        stop_and_wait(place, job)
        return f"{job}: stopped"
    before = read_deployment(place.lake, job)
    if action is DeployAction.ROLLBACK:
        version = release_before(place.lake, job)
    is_same = before is not None and before.version == version
    if action is DeployAction.START and is_same and place.launcher.inspect(job).state is DriverState.RUNNING:
        return f"{job}: release {version} is already running"
    own_resets = [query for query in resets if JOB_OF_QUERY[query] == job]
    _replace(place, job, version, own_resets, before)
    if why := _why_not_good(place, job, now):
        failure = f"{job}: release {version} does not work: {why}"
        if before is None or is_same:
            stop(place.lake, place.launcher, job, failure, utc_now())
            raise DeployError(f"{failure}; there is no previous release, so the job was stopped")
        try:
            _replace(place, job, before.version, unusable(place, before, own_resets), before)
        except (DeployError, CommandError) as error:
            raise DeployError(f"{failure}; the previous release could not be restored: {error}") from error
        write_deployment(place.lake, before)  # or a later rollback would lead to the release that did not work
        raise DeployError(f"{failure}; release {before.version} was started again")
    return f"{job}: release {version} is running"


def _replace(place: Place, job: str, version: str, resets: list[str], before: Deployment | None) -> None:
    """Stops the driver, if there is one, and starts ``version`` in its place.

    Raises:
        DeployError: ``version`` was not deployed. If the job was wanted, it was started again as it was ``before``.
    """
    was_wanted = is_wanted(place.lake, job, utc_now())
    try:
        with paused(place, job, f"deployment of release {version}"):
            if not was_wanted:
                stop_and_wait(place, job)
            reset(place, version, resets, before)
            deploy(place.lake, job, version, utc_now())
    except _FAILURES as error:
        outcome = _start_again(place, job, before) if was_wanted else "it was not wanted before, and was not started"
        raise DeployError(f"{job}: release {version} was not deployed: {error}; {outcome}") from error
    want(place.lake, job, WantedState.RUNNING, f"release {version} was deployed", utc_now())
    place.launcher.start(job)


def _start_again(place: Place, job: str, before: Deployment | None) -> str:
    """Starts ``job`` as it was ``before``; its watcher does so too, but later. Returns what came of it."""
    code = f"release {before.version}" if before else "the installed code"
    try:
        place.launcher.start(job)
    except _FAILURES as error:
        return f"{code} could not be started again ({error}); its watcher keeps trying"
    return f"{code} was started again"


def _why_not_good(place: Place, job: str, since: datetime) -> str:
    """Why the driver that was started after ``since`` did not complete a batch; empty if it did.

    A query without input reports that it is running instead.
    """
    deadline = time.monotonic() + _FIRST_BATCH.total_seconds()
    while time.monotonic() < deadline:
        driver = place.launcher.inspect(job)
        if (wanted := read_wanted(place.lake, job)) and wanted.is_paused:
            # Another task has paused the job, and will resume it.
            deadline = time.monotonic() + _FIRST_BATCH.total_seconds()
            time.sleep(_POLL_S)
            continue
        if driver.state in (DriverState.GIVEN_UP, DriverState.STOPPED, DriverState.RETRYING):
            last = place.launcher.log(job, 2000).strip().splitlines()[-1:]
            return f"its driver is {driver.state} ({last[0] if last else driver.detail})"
        reports = [one for one in read_reports(place.lake, QUERIES_OF_JOB[job]) if one.started_at > since]
        if failed := [one for one in reports if one.state is QueryState.FAILED]:
            return f"query {failed[0].query} failed: {failed[0].last_error}"
        # A query starts once the table that it reads exists.
        queries = [
            query
            for query in QUERIES_OF_JOB[job]
            if (reads := find_query(query).table_read) is None or place.lake.has(reads)
        ]
        if driver.state is DriverState.RUNNING and set(queries) <= {one.query for one in reports if _is_good(one)}:
            return ""
        time.sleep(_POLL_S)
    return f"it completed no batch within {_FIRST_BATCH}"


def _is_good(report: QueryReport) -> bool:
    return report.state is QueryState.RUNNING and report.updated_at > report.started_at
