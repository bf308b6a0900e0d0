"""The data of the page Streams: each job, its driver and the progress of its queries."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from pydantic import BaseModel

from ad_dags.connection.lake_connection import LakeConnection
from ad_dags.connection.lakes import LakeRef
from ad_dags.drivers.launchers import LauncherError
from ad_dags.drivers.supervision import supervising_dag_id
from spark_jobs.errors import LakeError
from spark_jobs.lake.records import find_record
from spark_jobs.operations.release import Deployment
from spark_jobs.operations.releases import read_deployment
from spark_jobs.queries.places import trend_key
from spark_jobs.queries.registry import QUERIES_OF_JOB
from spark_jobs.streams.desired_state import DesiredState, read_desired
from spark_jobs.streams.reports import QueryReport, Trend, TrendPoint, read_report


class QueryPart(BaseModel):
    """A query; ``report`` is None until it has started for the first time."""

    query: str
    report: QueryReport | None
    trend: list[TrendPoint]


class DriverPart(BaseModel):
    """A driver as the launcher sees it; ``state`` is ``unknown`` if it does not answer, and ``detail`` says why."""

    state: str
    process_id: int | None = None
    since: datetime | None = None
    detail: str = ""


class JobPart(BaseModel):
    """A job: its driver, what is wanted of it, its release, and its queries in the order in which rows flow."""

    job: str
    dag: str
    driver: DriverPart
    wanted: DesiredState | None
    deployment: Deployment | None
    queries: list[QueryPart]
    problems: list[str]


class StreamsPage(BaseModel):
    """Everything that the page shows, as of ``at`` (UTC)."""

    at: datetime
    lake: str
    deploy_dag: str
    jobs: list[JobPart]


def streams_page(
    connection: LakeConnection, lake: LakeRef, jobs: Iterable[str], now: datetime, *, span: timedelta
) -> StreamsPage:
    """The page for ``jobs``, with the trends of the last ``span``. What cannot be read is listed as a problem."""
    parts = [_job(connection, lake, job, now - span) for job in jobs]
    return StreamsPage(at=now, lake=connection.location, deploy_dag=lake.named("deploy_streams"), jobs=parts)


def _job(connection: LakeConnection, lake: LakeRef, job: str, start: datetime) -> JobPart:
    problems: list[str] = []
    wanted, deployment = None, None
    try:
        wanted = read_desired(connection.lake, job)
        deployment = read_deployment(connection.lake, job)
    except LakeError as error:
        problems.append(str(error))
    return JobPart(
        job=job,
        dag=lake.named(supervising_dag_id(job)),
        driver=_driver(connection, job),
        wanted=wanted,
        deployment=deployment,
        queries=[_query(connection, query, start) for query in QUERIES_OF_JOB[job]],
        problems=problems,
    )


def _driver(connection: LakeConnection, job: str) -> DriverPart:
    try:
        driver = connection.launcher.inspect(job)
    except LauncherError as error:
        return DriverPart(state="unknown", detail=str(error))
    return DriverPart(state=driver.state.value, process_id=driver.process_id, since=driver.since, detail=driver.detail)


def _query(connection: LakeConnection, query: str, start: datetime) -> QueryPart:
    trend = find_record(connection.lake, trend_key(query), Trend) or Trend()
    points = [point for point in trend.points if point.at >= start]
    return QueryPart(query=query, report=read_report(connection.lake, query), trend=points)
