"""The web application behind the pages. Every URL needs a login, and permissions on the DAGs whose data it shows."""

from datetime import timedelta
from enum import StrEnum
from importlib.resources import files
from string import Template
from typing import Annotated

from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.core_api.security import get_user
from fastapi import Depends, FastAPI, HTTPException, Query, Request, Response, status
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse

from ad_dags.clock import utc_now
from ad_dags.launchers import LauncherError
from ad_dags.pages.access import check, may_see
from ad_dags.pages.reports import INDEX, read_page
from ad_dags.pages.streams import StreamsPage, streams_page
from ad_dags.place import KnownPlace, Place, find_place
from ad_dags.supervision.naming import supervising_dag_id
from spark_jobs.contracts.errors import AdloomError
from spark_jobs.queries import QUERIES_OF_JOB

QUALITY_DAG = "validate_tables"
"""Users who may see its runs may see the reports."""
_OWN = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "frame-src 'self'"
)
_REPORT = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox allow-same-origin"
"""Content from the lake can have any style, but run nothing."""
_HERE = "ad_dags.pages"
_STATIC = {
    # Shared with the reports in the lake, so that both look the same.
    "base.css": ("expectations", "templates/_style.css.j2", "text/css"),
    "pages.css": (_HERE, "static/pages.css", "text/css"),
    "streams.js": (_HERE, "static/streams.js", "text/javascript"),
    "quality.js": (_HERE, "static/quality.js", "text/javascript"),
    "links.js": (_HERE, "static/links.js", "text/javascript"),
    "streams.svg": (_HERE, "static/streams.svg", "image/svg+xml"),
    "quality.svg": (_HERE, "static/quality.svg", "image/svg+xml"),
}
"""By name: its package, its path in the package, and its media type."""
_LOG_BYTES = 60_000
_known = KnownPlace(find_place)


class Span(StrEnum):
    """The time span of the charts."""

    HOUR = "hour"
    DAY = "day"

    @property
    def duration(self) -> timedelta:
        """As a duration."""
        return timedelta(hours=1) if self is Span.HOUR else timedelta(days=1)


def own_place() -> Place:
    """The place of this process. FastAPI calls it in a thread, because it may wait for a secrets backend."""
    return _known.now()


User = Annotated[BaseUser, Depends(get_user)]
OwnPlace = Annotated[Place, Depends(own_place)]

app = FastAPI(title="adloom", docs_url=None, redoc_url=None, openapi_url=None)
"""To be mounted under a prefix."""


@app.exception_handler(AdloomError)
@app.exception_handler(LauncherError)
def report_unavailable(_request: Request, error: Exception) -> Response:
    """An unavailable lake or launcher is not an internal error of the page."""
    return JSONResponse({"detail": str(error)}, status.HTTP_503_SERVICE_UNAVAILABLE)


@app.get("/streams")
def streams(user: User) -> Response:
    """The page Streams."""
    _visible_jobs(user)
    return _page("Streams", "streams.js", "streams.html")


@app.get("/api/streams")
def streams_data(user: User, place: OwnPlace, span: Annotated[Span, Query()] = Span.HOUR) -> StreamsPage:
    """The data of the page Streams, for the jobs that the user may see."""
    return streams_page(place, _visible_jobs(user), utc_now(), span=span.duration)


@app.get("/api/streams/{job}/log")
def log(user: User, place: OwnPlace, job: str) -> Response:
    """The end of the driver's log."""
    if job not in QUERIES_OF_JOB:
        raise HTTPException(status.HTTP_404_NOT_FOUND, f"there is no job {job!r}")
    check(user, supervising_dag_id(job), DagAccessEntity.TASK_LOGS)
    return PlainTextResponse(place.launcher.log(job, _LOG_BYTES), headers=_headers(_OWN))


@app.get("/quality")
def quality(user: User, place: OwnPlace) -> Response:
    """The page Data quality."""
    check(user, QUALITY_DAG, DagAccessEntity.RUN)
    body = "quality.html" if read_page(place.lake, INDEX) is not None else "no_quality.html"
    return _page("Data quality", "quality.js", body)


@app.get("/reports/{name:path}")
def report(user: User, place: OwnPlace, name: str) -> Response:
    """A page of the validation reports in the lake."""
    check(user, QUALITY_DAG, DagAccessEntity.RUN)
    content = read_page(place.lake, name)
    if content is None:
        raise HTTPException(status.HTTP_404_NOT_FOUND, f"the reports have no page {name!r}")
    return HTMLResponse(content, headers=_headers(_REPORT))


@app.get("/static/{name}")
def static(_user: User, name: str) -> Response:
    """Scripts, styles and icons of the pages."""
    if name not in _STATIC:
        raise HTTPException(status.HTTP_404_NOT_FOUND, f"there is no file {name!r}")
    package, file, kind = _STATIC[name]
    return Response(_file(file, package), media_type=kind, headers=_headers(_OWN))


def _visible_jobs(user: BaseUser) -> list[str]:
    jobs = [job for job in QUERIES_OF_JOB if may_see(user, supervising_dag_id(job))]
    if not jobs:
        raise HTTPException(status.HTTP_403_FORBIDDEN, "you have no permission to read the DAG of any streaming job")
    return jobs


def _page(title: str, script: str, body: str) -> Response:
    frame = Template(_file("static/page.html").decode())
    page = frame.substitute(title=title, script=script, body=_file(f"static/{body}").decode())
    return HTMLResponse(page, headers=_headers(_OWN))


def _headers(policy: str) -> dict[str, str]:
    return {
        "Content-Security-Policy": f"{policy}; frame-ancestors 'self'; base-uri 'none'; form-action 'none'",
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "same-origin",
        "Cache-Control": "no-store",
    }


def _file(name: str, package: str = _HERE) -> bytes:
    return files(package).joinpath(name).read_bytes()
