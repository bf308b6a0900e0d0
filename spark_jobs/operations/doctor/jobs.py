"""Whether the jobs that should run are running and keep up, and which are stopped on purpose."""

import os
from collections.abc import Iterator
from datetime import datetime, timedelta

from spark_jobs import __version__
from spark_jobs.config.durations import format_duration
from spark_jobs.config.secret_files import value_of
from spark_jobs.errors import LakeError
from spark_jobs.operations.doctor.description import Check, Finding, Subject, attempt, fine, warning, wrong
from spark_jobs.operations.releases import read_deployment, read_release
from spark_jobs.operations.signatures import PUBLIC_KEY, check_signature
from spark_jobs.queries.jobs import JOB_NAMES
from spark_jobs.queries.output import interval_of
from spark_jobs.queries.registry import JOB_OF_QUERY, QUERIES_OF_JOB, find_query
from spark_jobs.streams.desired_state import DesiredState, RunState, read_desired
from spark_jobs.streams.reports import DriverReport, QueryReport, QueryState, read_driver_report, read_reports

_SILENT = timedelta(minutes=2)
"""After this time and ``_INTERVALS`` intervals, a running query that reports nothing has died or hangs."""
_INTERVALS = 10


def _look(subject: Subject) -> Iterator[Finding]:
    for job in JOB_NAMES:
        yield from attempt(_job(subject, job))
        yield from attempt(_release(subject, job))
    if not any(True for _ in read_reports(subject.lake, JOB_OF_QUERY)):
        yield fine("no query has run yet")


def _job(subject: Subject, job: str) -> Iterator[Finding]:
    wanted = None
    try:
        wanted = read_desired(subject.lake, job)
    except LakeError as error:  # and its queries are looked at
        yield wrong(str(error), "")
    reports = list(_alive(subject, job))
    if wanted and wanted.state is RunState.FAILED:
        yield wrong(f"job {job} has failed {_ago(subject, wanted.since)}: {wanted.why}", _start(job))
    elif wanted and not wanted.runs_at(subject.now):
        if wanted.until:
            yield fine(f"job {job} is paused for {_text(wanted.until - subject.now)} more: {wanted.why}")
        else:
            yield fine(f"job {job} is stopped on purpose since {_ago(subject, wanted.since)}: {wanted.why}")
    elif wanted and not reports and (driver := read_driver_report(subject.lake, job)) and _is_fresh(subject, driver):
        yield fine(f"job {job} runs, and its queries start once the tables that they read exist")
    elif wanted and not reports and subject.now - _since(wanted) > _SILENT:
        since = _ago(subject, _since(wanted))
        yield wrong(
            f"no query of job {job} has ever reported, and it should run since {since} ({wanted.why})", _start(job)
        )
    for report in reports:
        yield _state(subject, report, wanted)
        if report.version != __version__ and report.state is QueryState.RUNNING:
            yield warning(
                f"{report.query} runs adloom {report.version}, and this is {__version__}",
                f"deploy {report.job} again, or use the command of its release",
            )


def _release(subject: Subject, job: str) -> Iterator[Finding]:
    """Which release it starts with; by the keys of this environment, it is one that may run."""
    deployed = read_deployment(subject.lake, job)
    if deployed:
        release = read_release(subject.lake, deployed.version)
        check_signature(release, os.environ)
        signed = "is signed" if release.signature else "is not signed"
        checked = (
            "" if value_of(os.environ, PUBLIC_KEY) else f", and {PUBLIC_KEY} is not set here, so nothing checks it"
        )
        yield fine(f"job {job} starts with release {release.version}, which {signed}{checked}")


def _is_fresh(subject: Subject, driver: DriverReport) -> bool:
    return subject.now - driver.updated_at <= _SILENT


def _alive(subject: Subject, job: str) -> Iterator[QueryReport]:
    """The reports of its queries. One whose batch takes long is as fresh as that of its driver."""
    driver = read_driver_report(subject.lake, job)
    for report in read_reports(subject.lake, QUERIES_OF_JOB[job]):
        is_running = driver and driver.process_id == report.process_id and report.state is QueryState.RUNNING
        seen = max(report.updated_at, driver.updated_at) if driver and is_running else report.updated_at
        yield report.model_copy(update={"updated_at": seen})


def _state(subject: Subject, report: QueryReport, wanted: DesiredState | None) -> Finding:
    if report.state is QueryState.FAILED:
        seen = _ago(subject, report.updated_at)
        return wrong(
            f"{report.query} failed {seen}: {report.last_error}", f"see the log of job {report.job}; docs/runbook.md"
        )
    patience = max(_SILENT, _INTERVALS * interval_of(subject.settings.job, find_query(report.query)))
    if report.state is QueryState.STOPPED:
        return _stopped(subject, report, wanted, patience)
    return _running(subject, report, wanted, patience)


def _stopped(subject: Subject, report: QueryReport, wanted: DesiredState | None, patience: timedelta) -> Finding:
    text = f"{report.query} stopped {_ago(subject, report.updated_at)}"
    if wanted is None or not wanted.runs_at(subject.now):
        return fine(text)
    if subject.now - max(_since(wanted), report.updated_at) <= patience:
        return fine(f"{text}; it should run ({wanted.why}), and may be starting")
    return wrong(f"{text} and should run ({wanted.why})", _start(report.job))


def _running(subject: Subject, report: QueryReport, wanted: DesiredState | None, patience: timedelta) -> Finding:
    age, seen = subject.now - report.updated_at, _ago(subject, report.updated_at)
    if age > patience:
        if wanted and not wanted.runs_at(subject.now):
            return fine(f"{report.query} last reported {seen}")
        return wrong(
            f"{report.query} should be running and last reported {seen}: it was killed, or hangs", _start(report.job)
        )
    if age < -timedelta(seconds=5):
        return warning(f"{report.query} reported {-age} in the future", "set the clocks of the machines, by NTP")
    lag = "" if report.watermark_lag_s is None else f", watermark {report.watermark_lag_s:,.0f} s behind"
    return fine(f"{report.query} reported {seen}{lag}")


def _since(wanted: DesiredState) -> datetime:
    """Since when a job that should run should do so: a pause ends by itself."""
    return wanted.until or wanted.since


def _start(job: str) -> str:
    return f"start the job again: `adloom job {job}`, or deploy_streams in Airflow; the job's log says why it ended"


def _ago(subject: Subject, at: datetime) -> str:
    return f"{_text(subject.now - at)} ago"


def _text(duration: timedelta) -> str:
    return format_duration(duration // timedelta(seconds=1) * timedelta(seconds=1))


CHECK = Check(6, "jobs", _look)
