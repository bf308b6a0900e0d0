"""Stopping, pausing and resuming a job: what is wanted of it, and its driver, together."""

import time
from datetime import datetime, timedelta

from ad_dags.clock import utc_now
from ad_dags.launchers import Launcher, LauncherError
from ad_dags.place import Place
from spark_jobs.contracts.lake import Lake
from spark_jobs.contracts.wanted import WantedState
from spark_jobs.runtime.wanted import read_wanted, want

_LONGEST_PAUSE = timedelta(hours=1)
_TO_DIE = timedelta(minutes=1)
"""How long a driver that its launcher kills may take to be gone."""
_POLL_S = 1.0


def stop(
    lake: Lake, launcher: Launcher, job: str, why: str, now: datetime, *, unless_after: datetime | None = None
) -> None:
    """Records that ``job`` is no longer wanted, and asks its driver to stop; does not wait.

    If somebody has asked for the job again after ``unless_after``, the record stands and only the driver stops.
    """
    wanted = read_wanted(lake, job)
    is_newer = wanted is not None and unless_after is not None and wanted.since > unless_after
    if not is_newer:
        want(lake, job, WantedState.STOPPED, why, now)
    launcher.stop(job)


def stop_and_wait(place: Place, job: str) -> None:
    """Asks the driver of ``job``, if there is one, to stop, and waits until it is gone, killed if need be.

    Raises:
        LauncherError: it outlasted even the launcher's attempts to kill it.
    """
    patience = place.stop_patience + _TO_DIE
    deadline = time.monotonic() + patience.total_seconds()
    place.launcher.stop(job)
    while place.launcher.inspect(job).state.is_alive:
        if time.monotonic() > deadline:
            raise LauncherError(f"job {job} did not stop within {patience}; nothing else was done")
        time.sleep(_POLL_S)
        place.launcher.stop(job)


def pause(place: Place, job: str, why: str, now: datetime) -> bool:
    """Stops the driver of ``job`` and waits until it is gone; the job is to run again after an hour at the latest.

    Returns:
        Whether the job was wanted: only then is it to be resumed.

    Raises:
        LauncherError: it did not stop in time; it is wanted again.
    """
    wanted = read_wanted(place.lake, job)
    if wanted is None or not wanted.runs_at(now):
        return False
    want(place.lake, job, WantedState.STOPPED, why, now, until=now + _LONGEST_PAUSE)
    try:
        stop_and_wait(place, job)
    except LauncherError:
        resume(place, job)
        raise
    return True


def resume(place: Place, job: str) -> None:
    """Records that ``job`` is wanted again after a pause; its watcher starts the driver."""
    want(place.lake, job, WantedState.RUNNING, "its pause is over", utc_now())
