"""Supervising a driver: look at it, apply the rules, act, and record in the lake who is watching."""

import logging
from datetime import datetime, timedelta

from ad_dags.drivers.launchers import Launcher, LauncherError
from ad_dags.drivers.supervision.rules import Action, Decision, Limits, Memory, decide
from spark_jobs.lake.layout import Lake
from spark_jobs.queries.registry import QUERIES_OF_JOB
from spark_jobs.streams.desired_state import RunState, read_desired, read_watcher, set_desired, watch, watcher_key
from spark_jobs.streams.reports import read_reports

_log = logging.getLogger(__name__)


def supervise_once(
    lake: Lake, launcher: Launcher, job: str, memory: Memory, limits: Limits, now: datetime, *, name: str
) -> Decision:
    """Looks at the driver of ``job`` once, acts on what it finds, and records ``name`` as the watcher of the job.

    If the launcher does not answer, nothing is done and the watch goes on: the driver may well be running.

    Raises:
        LakeError: the lake does not answer, or the record of what is wanted is damaged.
    """
    watch(lake, job, name, now)
    wanted = read_desired(lake, job)
    if wanted and wanted.state is RunState.STOPPED and wanted.runs_at(now):
        wanted = set_desired(lake, job, RunState.RUNNING, f"its pause is over ({wanted.why})", now)
    try:
        driver = launcher.inspect(job)
        decision = decide(
            now,
            driver,
            list(read_reports(lake, QUERIES_OF_JOB[job])),
            memory,
            limits,
            is_wanted=wanted is not None and wanted.runs_at(now),
        )
        if decision.action is Action.FINISH and wanted and wanted.is_paused:
            return Decision(Action.NOTHING, f"it is paused: {wanted.why}", decision.memory)
        if decision.action in (Action.FINISH, Action.FAIL):
            lake.files.delete([watcher_key(job)])  # nobody watches from now on
        _act(launcher, job, decision)
    except LauncherError as error:
        _log.warning("%s: %s", job, error)
        return Decision(Action.NOTHING, str(error), memory)
    return decision


def _act(launcher: Launcher, job: str, decision: Decision) -> None:
    if decision.action is Action.START:
        launcher.start(job)
    elif decision.action is Action.STOP:
        launcher.stop(job)
    if decision.action is not Action.NOTHING:
        _log.info("%s: %s: %s", job, decision.action, decision.why)


def is_watched(lake: Lake, job: str, now: datetime, *, patience: timedelta) -> bool:
    """Whether a watcher has looked at ``job`` within ``patience``."""
    watcher = read_watcher(lake, job)
    return watcher is not None and now - watcher.looked_at <= patience
