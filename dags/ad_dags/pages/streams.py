"""What the page Streams shows: each job, its driver, and how its queries fare."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from pydantic import BaseModel

from ad_dags.launchers import LauncherError
from ad_dags.place import Place
from ad_dags.tasks.supervise import dag_of
from spark_jobs.contracts.errors import LakeError
from spark_jobs.contracts.progress import QueryReport
from spark_jobs.contracts.releases import Deployment
from spark_jobs.contracts.trend import Trend, TrendPoint, trend_key
from spark_jobs.contracts.wanted import Wanted
from spark_jobs.queries import QUERIES_OF_JOB
from spark_jobs.runtime.records import find_record
from spark_jobs.runtime.releases import read_deployment
from spark_jobs.runtime.reports import read_report
from spark_jobs.runtime.wanted import read_wanted


class QueryPart(BaseModel):
    """A query; ``report`` is None before its first start."""

    query: str
    report: QueryReport | None
    trend: list[TrendPoint]


class DriverPart(BaseModel):
    """A driver as the launcher sees it; ``state`` is ``unknown`` where that does not answer, and ``told`` says why."""

    state: str
    process_id: int | None = None
    since: datetime | None = None
    told: str = ""


class JobPart(BaseModel):
    """A job: its driver, what is wanted of it, what it runs, its queries in the order in which rows flow."""

    job: str
    dag: str
    driver: DriverPart
    wanted: Wanted | None
    deployment: Deployment | None
    queries: list[QueryPart]
    troubles: list[str]


class StreamsPage(BaseModel):
    """All that the page shows, as it was ``at`` (UTC)."""

    at: datetime
    lake: str
    jobs: list[JobPart]


def streams_page(place: Place, jobs: Iterable[str], now: datetime, *, span: timedelta) -> StreamsPage:
    """The page for ``jobs``, with the trends of the last ``span``. What cannot be told is told as a trouble."""
    return StreamsPage(at=now, lake=place.location, jobs=[_job(place, job, now - span) for job in jobs])


def _job(place: Place, job: str, begin: datetime) -> JobPart:
    troubles: list[str] = []
    wanted, deployment = None, None
    try:
        wanted = read_wanted(place.lake, job)
        deployment = read_deployment(place.lake, job)
    except LakeError as error:
        troubles.append(str(error))
    return JobPart(
        job=job,
        dag=dag_of(job),
        driver=_driver(place, job),
        wanted=wanted,
        deployment=deployment,
        queries=[_query(place, query, begin) for query in QUERIES_OF_JOB[job]],
        troubles=troubles,
    )


def _driver(place: Place, job: str) -> DriverPart:
    try:
        found = place.launcher.look(job)
    except LauncherError as error:
        return DriverPart(state="unknown", told=str(error))
    return DriverPart(state=found.state.value, process_id=found.process_id, since=found.since, told=found.told)


def _query(place: Place, query: str, begin: datetime) -> QueryPart:
    trend = find_record(place.lake, trend_key(query), Trend) or Trend()
    points = [point for point in trend.points if point.at >= begin]
    return QueryPart(query=query, report=read_report(place.lake, query), trend=points)
