"""Supervising a driver: look at it, apply the rules, act, and record in the lake who is watching."""

import logging
from datetime import datetime

from ad_dags.drivers.launchers import Driver, Launcher, LauncherError
from ad_dags.drivers.supervision.rules import Action, Decision, Life, Limits, decide
from spark_jobs.lake.layout import Lake
from spark_jobs.queries.registry import QUERIES_OF_JOB
from spark_jobs.streams.desired_state import (
    RunState,
    Watch,
    read_desired,
    read_watch,
    set_desired,
    watch_key,
    write_watch,
)
from spark_jobs.streams.reports import read_driver_report, read_reports

_log = logging.getLogger(__name__)


def supervise_once(lake: Lake, launcher: Launcher, job: str, limits: Limits, now: datetime, *, name: str) -> Decision:
    """Looks at the driver of ``job`` once, acts on what it finds, and records ``name`` as the watcher of the job.

    What the watch remembers lies in the lake, so it does not matter which process looks. If the launcher does not
    answer, nothing is done and the watch goes on: the driver may well be running.

    Raises:
        LakeError: the lake does not answer, or the record of what is wanted is damaged.
    """
    before = read_watch(lake, job) or Watch(name=name, looked_at=now)
    watch = before.model_copy(update={"name": name, "looked_at": now})
    wanted = read_desired(lake, job)
    if wanted and wanted.state is RunState.STOPPED and wanted.runs_at(now):
        wanted = set_desired(lake, job, RunState.RUNNING, f"its pause is over ({wanted.why})", now)
    try:
        driver = launcher.inspect(job)
        decision = decide(now, driver, _life(lake, driver, watch), wanted, watch, limits)
        if decision.action is Action.FINISH and wanted and wanted.is_paused:
            decision = Decision(Action.NOTHING, f"it is paused: {wanted.why}", decision.watch)
        # Before the act: if this process dies in between, the start counts all the same.
        write_watch(lake, job, decision.watch)
        if decision.action is Action.FAIL and wanted and wanted.state is not RunState.FAILED:
            set_desired(lake, job, RunState.FAILED, decision.why, now)
        if decision.action in (Action.FINISH, Action.FAIL):
            lake.files.delete([watch_key(job)])  # nobody watches from now on
        _act(launcher, job, decision)
    except LauncherError as error:
        _log.warning("%s: %s", job, error)
        write_watch(lake, job, watch)
        return Decision(Action.NOTHING, str(error), watch)
    return decision


def _life(lake: Lake, driver: Driver, watch: Watch) -> Life:
    """The news from the process of ``driver``: its reports, and those of its queries, as earlier releases had them."""
    queries = [one for one in read_reports(lake, QUERIES_OF_JOB[driver.job]) if one.process_id == driver.process_id]
    report = read_driver_report(lake, driver.job)
    if report and (
        report.process_id != driver.process_id or (watch.started_at and report.updated_at < watch.started_at)
    ):
        report = None
    signs = [one.updated_at for one in (report, *queries) if one]
    is_well = report is not None and (report.has_completed or report.is_idle)
    return Life(max(signs, default=None), report.started_at if report and is_well else None)


def _act(launcher: Launcher, job: str, decision: Decision) -> None:
    if decision.action is Action.START:
        launcher.start(job)
    elif decision.action is Action.STOP:
        launcher.stop(job)
    if decision.action is not Action.NOTHING:
        _log.info("%s: %s: %s", job, decision.action, decision.why)
