"""The web application behind the pages. Every URL needs a login, and permissions on the DAGs whose data it shows.

A URL names its lake, as in ``/lakes/eu_/streams``. One that names none, as in ``/streams``, means the first lake that
the user may see.
"""

from datetime import timedelta
from enum import StrEnum
from html import escape
from importlib.resources import files
from string import Template
from typing import Annotated

from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.core_api.security import get_user
from fastapi import APIRouter, Depends, FastAPI, HTTPException, Query, Request, Response, status
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse

from ad_dags.clock import utc_now
from ad_dags.connection.lake_connection import KnownConnection, LakeConnection, connect
from ad_dags.connection.lakes import LakeRef, lakes_here
from ad_dags.drivers.launchers import LauncherError
from ad_dags.drivers.supervision import supervising_dag_id
from ad_dags.pages.access import check, may_see
from ad_dags.pages.reports import INDEX, read_page
from ad_dags.pages.streams import StreamsPage, streams_page
from spark_jobs.errors import AdloomError
from spark_jobs.queries.registry import QUERIES_OF_JOB

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
_known: dict[LakeRef, KnownConnection] = {}


class Span(StrEnum):
    """The time span of the charts."""

    HOUR = "hour"
    DAY = "day"

    @property
    def duration(self) -> timedelta:
        """As a duration."""
        return timedelta(hours=1) if self is Span.HOUR else timedelta(days=1)


def key_of(lake: LakeRef) -> str:
    """How URLs name ``lake``."""
    return lake.prefix or "-"


User = Annotated[BaseUser, Depends(get_user)]


def own_lake(user: User, request: Request) -> LakeRef:
    """The lake that the URL means.

    Raises:
        HTTPException: 404: there is no lake of that name.
    """
    lakes, key = lakes_here(), request.path_params.get("lake")
    if key is None:
        return next((lake for lake in lakes if _is_visible(user, lake)), lakes[0])
    found = next((lake for lake in lakes if key_of(lake) == key), None)
    if found is None:
        raise HTTPException(status.HTTP_404_NOT_FOUND, f"there is no lake {key!r}")
    return found


OwnLake = Annotated[LakeRef, Depends(own_lake)]


def own_connection(lake: OwnLake) -> LakeConnection:
    """The connection of that lake. FastAPI calls it in a thread, because it may wait for a secrets backend."""
    return _known.setdefault(lake, KnownConnection(lambda: connect(lake))).now()


OwnConnection = Annotated[LakeConnection, Depends(own_connection)]
router = APIRouter()


@router.get("/streams")
def streams(user: User, lake: OwnLake, request: Request) -> Response:
    """The page Streams."""
    _visible_jobs(user, lake)
    return _page("Streams", "streams", user, lake, request)


@router.get("/api/streams")
def streams_data(
    user: User, lake: OwnLake, connection: OwnConnection, span: Annotated[Span, Query()] = Span.HOUR
) -> StreamsPage:
    """The data of the page Streams, for the jobs that the user may see."""
    return streams_page(connection, lake, _visible_jobs(user, lake), utc_now(), span=span.duration)


@router.get("/api/streams/{job}/log")
def log(user: User, lake: OwnLake, connection: OwnConnection, job: str) -> Response:
    """The end of the driver's log."""
    if job not in QUERIES_OF_JOB:
        raise HTTPException(status.HTTP_404_NOT_FOUND, f"there is no job {job!r}")
    check(user, lake.named(supervising_dag_id(job)), DagAccessEntity.TASK_LOGS)
    return PlainTextResponse(connection.launcher.log(job, _LOG_BYTES), headers=_headers(_OWN))


@router.get("/quality")
def quality(user: User, lake: OwnLake, connection: OwnConnection, request: Request) -> Response:
    """The page Data quality."""
    check(user, lake.named(QUALITY_DAG), DagAccessEntity.RUN)
    body = "quality" if read_page(connection.lake, INDEX) is not None else "no_quality"
    return _page("Data quality", body, user, lake, request)


@router.get("/reports/{name:path}")
def report(user: User, lake: OwnLake, connection: OwnConnection, name: str) -> Response:
    """A page of the validation reports in the lake."""
    check(user, lake.named(QUALITY_DAG), DagAccessEntity.RUN)
    content = read_page(connection.lake, name)
    if content is None:
        raise HTTPException(status.HTTP_404_NOT_FOUND, f"the reports have no page {name!r}")
    return HTMLResponse(content, headers=_headers(_REPORT))


@router.get("/static/{name}")
def static(_user: User, name: str) -> Response:
    """Scripts, styles and icons of the pages."""
    if name not in _STATIC:
        raise HTTPException(status.HTTP_404_NOT_FOUND, f"there is no file {name!r}")
    package, file, kind = _STATIC[name]
    return Response(_file(file, package), media_type=kind, headers=_headers(_OWN))


app = FastAPI(title="adloom", docs_url=None, redoc_url=None, openapi_url=None)
"""To be mounted under a prefix."""
app.include_router(router)
app.include_router(router, prefix="/lakes/{lake}")


@app.exception_handler(AdloomError)
@app.exception_handler(LauncherError)
def report_unavailable(_request: Request, error: Exception) -> Response:
    """An unavailable lake or launcher is not an internal error of the page."""
    return JSONResponse({"detail": str(error)}, status.HTTP_503_SERVICE_UNAVAILABLE)


def _is_visible(user: BaseUser, lake: LakeRef) -> bool:
    names = (QUALITY_DAG, *map(supervising_dag_id, QUERIES_OF_JOB))
    return any(may_see(user, lake.named(name)) for name in names)


def _visible_jobs(user: BaseUser, lake: LakeRef) -> list[str]:
    jobs = [job for job in QUERIES_OF_JOB if may_see(user, lake.named(supervising_dag_id(job)))]
    if not jobs:
        raise HTTPException(status.HTTP_403_FORBIDDEN, "you have no permission to read the DAG of any streaming job")
    return jobs


def _page(title: str, body: str, user: BaseUser, lake: LakeRef, request: Request) -> Response:
    page = "streams" if body == "streams" else "quality"
    root = "../../" if "lake" in request.path_params else ""
    parts = {
        "title": title,
        "root": root,
        "script": f"{page}.js",
        "quality_dag": lake.named(QUALITY_DAG),
        "lakes": _links(page, root, lake, [one for one in lakes_here() if _is_visible(user, one)]),
    }
    parts["body"] = Template(_file(f"static/{body}.html").decode()).substitute(parts)
    return HTMLResponse(Template(_file("static/page.html").decode()).substitute(parts), headers=_headers(_OWN))


def _links(page: str, root: str, own: LakeRef, lakes: list[LakeRef]) -> str:
    """Links to the same page of other lakes; nothing if there are no others."""
    if len(lakes) <= 1:
        return ""
    current = {own: ' aria-current="page"'}
    links = [
        f'<a href="{root}lakes/{key_of(lake)}/{page}"{current.get(lake, "")}>{escape(lake.connection)}</a>'
        for lake in lakes
    ]
    return f'<nav class="choice" aria-label="Lake">{"".join(links)}</nav>'


def _headers(policy: str) -> dict[str, str]:
    return {
        "Content-Security-Policy": f"{policy}; frame-ancestors 'self'; base-uri 'none'; form-action 'none'",
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "same-origin",
        "Cache-Control": "no-store",
    }


def _file(name: str, package: str = _HERE) -> bytes:
    return files(package).joinpath(name).read_bytes()
