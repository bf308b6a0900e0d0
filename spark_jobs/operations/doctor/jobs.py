"""Whether the queries that should run are running and keep up."""

from collections.abc import Iterator
from datetime import timedelta

from spark_jobs import __version__
from spark_jobs.config.durations import format_duration
from spark_jobs.operations.doctor.description import Check, Finding, Subject, fine, warning, wrong
from spark_jobs.queries.output import interval_of
from spark_jobs.queries.registry import JOB_OF_QUERY, find_query
from spark_jobs.streams.reports import QueryReport, QueryState, read_reports

_SILENT = timedelta(minutes=2)
"""After this time and ``_INTERVALS`` intervals, a running query that reports nothing has died or hangs."""
_INTERVALS = 10


def _look(subject: Subject) -> Iterator[Finding]:
    reports = list(read_reports(subject.lake, JOB_OF_QUERY))
    if not reports:
        yield fine("no query has run yet")
    for report in reports:
        yield _state(subject, report)
        if report.version != __version__ and report.state is QueryState.RUNNING:
            yield warning(
                f"{report.query} runs adloom {report.version}, and this is {__version__}",
                f"deploy {report.job} again, or use the command of its release",
            )


def _state(subject: Subject, report: QueryReport) -> Finding:
    age = subject.now - report.updated_at
    seen = f"{format_duration(age // timedelta(seconds=1) * timedelta(seconds=1))} ago"
    if report.state is QueryState.FAILED:
        return wrong(
            f"{report.query} failed {seen}: {report.last_error}", f"see the log of job {report.job}; docs/runbook.md"
        )
    if report.state is QueryState.STOPPED:
        return fine(f"{report.query} stopped {seen}")
    patience = max(_SILENT, _INTERVALS * interval_of(subject.settings.job, find_query(report.query)))
    if age > patience:
        return wrong(
            f"{report.query} should be running and last reported {seen}: it was killed, or hangs",
            f"start the job again: `adloom job {report.job}`, or deploy_streams in Airflow",
        )
    if age < -timedelta(seconds=5):
        return warning(f"{report.query} reported {-age} in the future", "set the clocks of the machines, by NTP")
    lag = "" if report.watermark_lag_s is None else f", watermark {report.watermark_lag_s:,.0f} s behind"
    return fine(f"{report.query} reported {seen}{lag}")


CHECK = Check(6, "jobs", _look)
