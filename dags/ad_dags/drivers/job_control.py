"""Stopping, pausing and resuming a job: what is wanted of it, and its driver, together."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from ad_dags.clock import utc_now
from ad_dags.connection.lake_connection import LakeConnection
from ad_dags.drivers.launchers import Launcher, LauncherError
from spark_jobs.errors import LakeError
from spark_jobs.lake.layout import Lake
from spark_jobs.streams.desired_state import DesiredState, RunState, read_desired, set_desired

_LONGEST_PAUSE = timedelta(hours=1)
_RESUME_WITHIN = timedelta(minutes=10)
"""How long to retry when the end of a pause cannot be recorded."""
_TO_DIE = timedelta(minutes=1)
"""How long a driver that its launcher kills may take to be gone."""
_POLL_S = 1.0
_log = logging.getLogger(__name__)


def stop(lake: Lake, launcher: Launcher, job: str, why: str, now: datetime) -> None:
    """Records that ``job`` is no longer wanted, and asks its driver to stop; does not wait."""
    set_desired(lake, job, RunState.STOPPED, why, now)
    launcher.stop(job)


def stop_marked(lake: Lake, launcher: Launcher, job: str, now: datetime, looked_at: datetime) -> None:
    """Does as :func:`stop`, because the task that watches over ``job`` was marked or cleared in Airflow.

    If somebody has said what is wanted after ``looked_at``, the watch's last look, that stands and only the driver
    stops.
    """
    wanted = read_desired(lake, job)
    if wanted is None or wanted.since <= looked_at:
        set_desired(lake, job, RunState.STOPPED, "its task was marked in Airflow", now, is_marked=True)
    launcher.stop(job)


def stop_and_wait(connection: LakeConnection, job: str) -> None:
    """Asks the driver of ``job``, if there is one, to stop, and waits until it is gone, killed if need be.

    Raises:
        LauncherError: it outlasted even the launcher's attempts to kill it.
    """
    patience = connection.stop_patience + _TO_DIE
    deadline = time.monotonic() + patience.total_seconds()
    while True:
        connection.launcher.stop(job)
        if not connection.launcher.inspect(job).state.is_alive:
            return
        if time.monotonic() > deadline:
            raise LauncherError(f"job {job} did not stop within {patience}; nothing else was done")
        time.sleep(_POLL_S)


def is_wanted(lake: Lake, job: str, now: datetime) -> bool:
    """Whether ``job`` is to run at ``now``."""
    wanted = read_desired(lake, job)
    return wanted is not None and wanted.runs_at(now)


def wait_for_pause(lake: Lake, job: str) -> None:
    """Waits until nobody pauses ``job`` any more. A pause that nobody ends is over after an hour.

    Raises:
        LakeError: the lake does not answer.
    """
    logged = None
    while (wanted := read_desired(lake, job)) and wanted.is_paused and not wanted.runs_at(utc_now()):
        if wanted != logged:
            _log.info("%s: waiting until its pause is over: %s", job, wanted.why)
        logged = wanted
        time.sleep(_POLL_S)


@contextmanager
def paused(connection: LakeConnection, job: str, why: str) -> Iterator[None]:
    """Stops the driver of ``job`` for the duration of its block; does nothing if the job is not wanted.

    However the block ends, the job is wanted again afterwards, and its watcher starts the driver, unless somebody has
    stopped the job meanwhile. If this process dies, the job runs again after an hour.

    Raises:
        LauncherError: the driver did not stop; the block did not run.
    """
    now = utc_now()
    if not is_wanted(connection.lake, job, now):
        yield
        return
    pause = set_desired(connection.lake, job, RunState.STOPPED, why, now, until=now + _LONGEST_PAUSE)
    try:
        stop_and_wait(connection, job)
        yield
    finally:
        _resume(connection, job, pause)


def _resume(connection: LakeConnection, job: str, pause: DesiredState) -> None:
    """Ends ``pause``; retried, because the lake may be the reason why the block has failed."""
    deadline = time.monotonic() + _RESUME_WITHIN.total_seconds()
    while True:
        try:
            if read_desired(connection.lake, job) == pause:
                set_desired(connection.lake, job, RunState.RUNNING, f"its pause is over ({pause.why})", utc_now())
        except LakeError as error:
            if time.monotonic() > deadline:
                raise
            _log.warning("%s: still paused, retrying to resume it: %s", job, error)
            time.sleep(_POLL_S)
        else:
            return
