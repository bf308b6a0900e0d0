"""One look at a job's driver, and what follows from it."""

import logging
import time
from datetime import UTC, datetime, timedelta

from ad_dags.launchers import Launcher, LauncherError
from ad_dags.place import Place
from ad_dags.watching import Action, Judgement, Limits, Memory, judge
from spark_jobs.contracts.lake import Lake
from spark_jobs.contracts.wanted import WantedState, watcher_key
from spark_jobs.queries import QUERIES_OF_JOB
from spark_jobs.runtime.reports import read_reports
from spark_jobs.runtime.wanted import read_wanted, read_watcher, want, watch

_LONGEST_PAUSE = timedelta(hours=1)
_POLL_S = 1.0
_log = logging.getLogger(__name__)


def look_and_act(
    lake: Lake, launcher: Launcher, job: str, memory: Memory, limits: Limits, now: datetime, *, name: str
) -> Judgement:
    """Looks at the driver of ``job``, does what is to be done, and leaves word in the lake that ``name`` watches.

    A launcher that does not answer is no reason to give up: the driver may well be running.

    Raises:
        LakeError: the lake does not answer, or what is wanted cannot be told.
    """
    watch(lake, job, name, now)
    wanted = read_wanted(lake, job)
    if wanted and wanted.state is WantedState.STOPPED and wanted.runs_at(now):
        wanted = want(lake, job, WantedState.RUNNING, f"its pause is over ({wanted.why})", now)
    try:
        driver = launcher.look(job)
        found = judge(
            now,
            driver,
            list(read_reports(lake, QUERIES_OF_JOB[job])),
            memory,
            limits,
            is_wanted=wanted is not None and wanted.runs_at(now),
        )
        if found.action is Action.FINISH and wanted and wanted.is_paused:
            return Judgement(Action.NOTHING, f"it pauses: {wanted.why}", found.memory)
        if found.action in (Action.FINISH, Action.FAIL):
            lake.files.delete([watcher_key(job)])  # nobody watches from now on
        _act(launcher, job, found)
    except LauncherError as error:
        _log.warning("%s: %s", job, error)
        return Judgement(Action.NOTHING, str(error), memory)
    return found


def _act(launcher: Launcher, job: str, found: Judgement) -> None:
    if found.action is Action.START:
        launcher.start(job)
    elif found.action is Action.DRAIN:
        launcher.drain(job)
    if found.action is not Action.NOTHING:
        _log.info("%s: %s: %s", job, found.action, found.why)


def drain(
    lake: Lake, launcher: Launcher, job: str, why: str, now: datetime, *, unless_after: datetime | None = None
) -> None:
    """Says that ``job`` is not wanted any more, unless it was wanted anew after ``unless_after``; drains its driver."""
    wanted = read_wanted(lake, job)
    is_newer = wanted is not None and unless_after is not None and wanted.since > unless_after
    if not is_newer:
        want(lake, job, WantedState.STOPPED, why, now)
    launcher.drain(job)


def pause(place: Place, job: str, why: str, now: datetime) -> bool:
    """Drains the driver of ``job``, waits for its end, and has it run again after an hour should nobody say so before.

    Returns:
        Whether the job was wanted: only then is it to be wanted again.

    Raises:
        LauncherError: it did not stop in time; it is wanted again.
    """
    wanted = read_wanted(place.lake, job)
    if wanted is None or not wanted.runs_at(now):
        return False
    want(place.lake, job, WantedState.STOPPED, why, now, until=now + _LONGEST_PAUSE)
    try:
        drain_and_wait(place, job)
    except LauncherError:
        resume(place, job)
        raise
    return True


def drain_and_wait(place: Place, job: str) -> None:
    """Drains the driver of ``job``, if there is one, and waits for its end.

    Raises:
        LauncherError: it did not stop in time.
    """
    deadline = time.monotonic() + place.stop_patience.total_seconds()
    place.launcher.drain(job)
    while place.launcher.look(job).state.is_alive:
        if time.monotonic() > deadline:
            raise LauncherError(f"job {job} did not stop within {place.stop_patience}; nothing else was done")
        time.sleep(_POLL_S)


def resume(place: Place, job: str) -> None:
    """Has ``job`` run again after a pause; its watcher starts it."""
    want(place.lake, job, WantedState.RUNNING, "its pause is over", utc_now())


def is_watched(lake: Lake, job: str, now: datetime, *, patience: timedelta) -> bool:
    """Whether somebody watches over ``job``, and has looked within ``patience``."""
    watcher = read_watcher(lake, job)
    return watcher is not None and now - watcher.looked_at <= patience


def dag_of(job: str) -> str:
    """The DAG that supervises ``job``."""
    return f"supervise_{job}"


def utc_now() -> datetime:
    """The clock on the wall."""
    return datetime.now(UTC)
