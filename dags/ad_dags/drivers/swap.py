"""Replacing the release that a driver runs: stop it, start the new one, and return to the old one if need be."""

import logging
import time
from datetime import datetime
from enum import StrEnum

from ad_dags.clock import utc_now
from ad_dags.commands import CommandError
from ad_dags.connection.lake_connection import LakeConnection
from ad_dags.drivers.compatibility import reset, unusable
from ad_dags.drivers.job_control import is_wanted, paused, stop, stop_and_wait, wait_for_pause
from ad_dags.drivers.launchers import DriverState, LauncherError
from ad_dags.drivers.supervision.rules import Limits
from spark_jobs.errors import AdloomError
from spark_jobs.operations.release import Deployment
from spark_jobs.operations.releases import deploy, read_deployment, release_before, write_deployment
from spark_jobs.queries.registry import JOB_OF_QUERY, QUERIES_OF_JOB, find_query
from spark_jobs.streams.desired_state import RunState, set_desired
from spark_jobs.streams.reports import QueryReport, QueryState, read_reports

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


def swap_one(
    connection: LakeConnection, job: str, action: DeployAction, version: str, resets: list[str], limits: Limits
) -> str:
    """Performs ``action`` on ``job``; a start or restart with release ``version``. Returns what is running now.

    While something else has paused the job, as table maintenance does, it waits.

    Raises:
        DeployError: a checkpoint of ``resets`` could not be reset, or the release did not complete a batch.
    """
    now = utc_now()
    if action is DeployAction.STOP:
        stop(connection.lake, connection.launcher, job, "deploy_streams, action stop", now)
        stop_and_wait(connection, job)
        return f"{job}: stopped"
    wait_for_pause(connection.lake, job)
    before = read_deployment(connection.lake, job)
    if action is DeployAction.ROLLBACK:
        version = release_before(connection.lake, job)
    is_same = before is not None and before.version == version
    if action is DeployAction.START and is_same and connection.launcher.inspect(job).state is DriverState.RUNNING:
        return f"{job}: release {version} is already running"
    own_resets = [query for query in resets if JOB_OF_QUERY[query] == job]
    _replace(connection, job, version, own_resets, before)
    if why := _why_not_good(connection, job, now, limits):
        failure = f"{job}: release {version} does not work: {why}"
        if before is None or is_same:
            stop(connection.lake, connection.launcher, job, failure, utc_now())
            raise DeployError(f"{failure}; there is no previous release, so the job was stopped")
        try:
            _replace(connection, job, before.version, unusable(connection, before, own_resets), before)
        except (DeployError, CommandError) as error:
            raise DeployError(f"{failure}; the previous release could not be restored: {error}") from error
        write_deployment(connection.lake, before)  # or a later rollback would lead to the release that did not work
        raise DeployError(f"{failure}; release {before.version} was started again")
    return f"{job}: release {version} is running"


def _replace(connection: LakeConnection, job: str, version: str, resets: list[str], before: Deployment | None) -> None:
    """Stops the driver, if there is one, and starts ``version`` in its place.

    Raises:
        DeployError: ``version`` was not deployed. If the job was wanted, it was started again as it was ``before``.
    """
    was_wanted = is_wanted(connection.lake, job, utc_now())
    try:
        with paused(connection, job, f"deployment of release {version}"):
            if not was_wanted:
                stop_and_wait(connection, job)
            reset(connection, version, resets, before)
            deploy(connection.lake, job, version, utc_now())
    except _FAILURES as error:
        outcome = _start_again(connection, job, before) if was_wanted else "it was not wanted, and was not started"
        raise DeployError(f"{job}: release {version} was not deployed: {error}; {outcome}") from error
    set_desired(connection.lake, job, RunState.RUNNING, f"release {version} was deployed", utc_now())
    connection.launcher.start(job)


def _start_again(connection: LakeConnection, job: str, before: Deployment | None) -> str:
    """Starts ``job`` as it was ``before``; its watcher does so too, but later. Returns what came of it."""
    code = f"release {before.version}" if before else "the installed code"
    try:
        connection.launcher.start(job)
    except _FAILURES as error:
        return f"{code} could not be started again ({error}); its watcher keeps trying"
    return f"{code} was started again"


def _why_not_good(connection: LakeConnection, job: str, since: datetime, limits: Limits) -> str:
    """Why the driver that was started after ``since`` does not work; empty if it does.

    Each query must complete a batch, or report that it is running without input. First batches that take long, as after
    a reset, are waited for up to ``limits.good_after``, as long as their tasks end; then they are left to the driver.
    """
    begun = last_progress = time.monotonic()
    seen: object = None
    while time.monotonic() - last_progress < limits.first_batch.total_seconds():
        driver = connection.launcher.inspect(job)
        if driver.state in (DriverState.FAILED, DriverState.STOPPED):
            last = connection.launcher.log(job, 2000).strip().splitlines()[-1:]
            return f"its driver has {driver.state} ({last[0] if last else driver.detail})"
        reports = [one for one in read_reports(connection.lake, QUERIES_OF_JOB[job]) if one.started_at > since]
        if failed := [one for one in reports if one.state is QueryState.FAILED]:
            return f"query {failed[0].query} failed: {failed[0].last_error}"
        # A query starts once the table that it reads exists.
        reads = {query: find_query(query).table_read for query in QUERIES_OF_JOB[job]}
        queries = {query for query, table in reads.items() if table is None or connection.lake.has(table)}
        good = {one.query for one in reports if _is_good(one)}
        if driver.state is DriverState.RUNNING and queries <= good:
            return ""
        progress = [(one.query, one.batch_id, one.tasks_done, one.tasks) for one in reports]
        if progress != seen:
            seen, last_progress = progress, time.monotonic()
        if reports and last_progress - begun > limits.good_after.total_seconds():
            waiting = ", ".join(sorted(queries - good))
            _log.info("%s: first batches take long, and go on: %s; the page Streams shows them", job, waiting)
            return ""
        time.sleep(_POLL_S)
    return f"its first batches made no progress for {limits.first_batch}"


def _is_good(report: QueryReport) -> bool:
    return report.state is QueryState.RUNNING and report.busy_since is None and report.updated_at > report.started_at
