"""The pages in Airflow's UI: nothing without a login or without permission, and no file outside of the reports."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.api_fastapi.app import create_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from airflow.api_fastapi.core_api.security import get_user
from fastapi.testclient import TestClient

from ad_dags.connection.lake_connection import LakeConnection
from ad_dags.drivers.launchers import DriverState
from ad_dags.pages import access
from ad_dags.pages import app as pages
from ad_dags.pages.app import app, own_connection
from spark_jobs.config.settings import Settings
from spark_jobs.lake.open import open_lake
from spark_jobs.lake.records import write_record
from spark_jobs.operations.release import Deployment
from spark_jobs.operations.releases import write_deployment
from spark_jobs.places import OVERVIEW, REPORTS
from spark_jobs.queries.places import progress_key, trend_key
from spark_jobs.streams.desired_state import RunState, set_desired
from spark_jobs.streams.reports import QueryReport, Trend
from tests.dags.fakes import RecordingLauncher

_NOW = datetime.now(UTC)
_PAGES = (
    "/streams",
    "/api/streams",
    "/api/streams/deduplicate/log",
    "/quality",
    "/reports/index.html",
    "/reports/overview.html",
    "/static/streams.js",
)
_PAGE = f"{REPORTS}/data_docs/validations/bronze/validation/20261122T041500.000Z/bronze-rows.html"


@pytest.fixture
def connection(tmp_path: Path) -> LakeConnection:
    lake = open_lake(str(tmp_path / "lake"))
    lake.files.write(f"{REPORTS}/index.html", b"<h1>Data quality</h1>")
    lake.files.write(OVERVIEW, b"<h1>What the tables say</h1>")
    lake.files.write(_PAGE, b"<h1>bronze</h1>")
    return LakeConnection(str(tmp_path / "lake"), None, Settings(), lake, RecordingLauncher(DriverState.RUNNING))


@pytest.fixture
def client(connection: LakeConnection) -> Iterator[TestClient]:
    """A browser without a login."""
    create_auth_manager()
    app.dependency_overrides[own_connection] = lambda: connection
    with TestClient(app, raise_server_exceptions=False) as browser:
        yield browser
    app.dependency_overrides.clear()


def _log_in(role: str | None) -> None:
    app.dependency_overrides[get_user] = lambda: SimpleAuthManagerUser(username="somebody", role=role)


@pytest.mark.parametrize("path", _PAGES)
def test_without_a_login_nothing_is_served(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 401


@pytest.mark.parametrize("path", _PAGES[:-1])
def test_users_without_permission_see_nothing_and_learn_which_one_is_missing(client: TestClient, path: str) -> None:
    _log_in(None)
    answer = client.get(path)
    assert answer.status_code == 403
    assert "no permission to read the DAG" in answer.json()["detail"]


@pytest.mark.parametrize("path", _PAGES)
def test_a_viewer_sees_every_page_and_no_other_site_may_frame_it(client: TestClient, path: str) -> None:
    _log_in("viewer")
    answer = client.get(path)
    assert answer.status_code == 200
    if not path.startswith("/api/streams") or path.endswith("log"):
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'self'" in policy
        assert "unsafe-eval" not in policy
        assert answer.headers["Cache-Control"] == "no-store"


class _OnlyAttribute(SimpleAuthManager):
    """A user who may read one DAG only, and not its logs."""

    dag = "supervise_attribute"

    def is_authorized_dag(
        self,
        *,
        method: Any,
        user: SimpleAuthManagerUser,
        access_entity: DagAccessEntity | None = None,
        details: DagDetails | None = None,
    ) -> bool:
        del method, user
        return access_entity is None and details is not None and details.id == self.dag


def test_users_see_only_the_jobs_whose_dags_they_may_read(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "get_auth_manager", _OnlyAttribute)
    _log_in("viewer")
    assert [job["job"] for job in client.get("/api/streams").json()["jobs"]] == ["attribute"]
    assert client.get("/api/streams/attribute/log").status_code == 403
    assert client.get("/api/streams/deduplicate/log").status_code == 403
    assert client.get("/reports/index.html").status_code == 403


def test_the_streams_page_shows_what_the_lake_and_the_launcher_know(
    client: TestClient, connection: LakeConnection
) -> None:
    _log_in("viewer")
    report = QueryReport(
        job="deduplicate",
        query="ingest",
        version="1.0.0",
        process_id=1,
        started_at=_NOW,
        updated_at=_NOW,
        batch_id=3,
        batch_ms=1500,
        input_rows_per_s=10.0,
        state_rows=7,
    )
    trend = Trend().after(report.model_copy(update={"updated_at": _NOW - timedelta(hours=2)})).after(report)
    write_record(connection.lake, progress_key("ingest"), report)
    write_record(connection.lake, trend_key("ingest"), trend)
    write_deployment(connection.lake, Deployment(job="deduplicate", version="1.0.0", deployed_at=_NOW))
    set_desired(connection.lake, "deduplicate", RunState.RUNNING, "a test", _NOW)

    deduplicate, attribute, _measure = client.get("/api/streams").json()["jobs"]

    assert deduplicate["dag"] == "supervise_deduplicate"
    assert deduplicate["driver"]["state"] == "running"
    assert deduplicate["deployment"]["version"] == "1.0.0"
    assert deduplicate["wanted"]["why"] == "a test"
    ingest, silver = deduplicate["queries"]
    assert ingest["report"]["batch_id"] == 3
    assert [point["batch_s"] for point in ingest["trend"]] == [1.5]
    assert silver["report"] is None
    assert attribute["deployment"] is None
    (both,) = {len(client.get("/api/streams?span=day").json()["jobs"][0]["queries"][0]["trend"])}
    assert both == 2
    assert client.get("/api/streams?span=year").status_code == 422


def test_a_launcher_that_does_not_answer_or_a_damaged_file_hides_nothing_else(
    client: TestClient, connection: LakeConnection
) -> None:
    _log_in("viewer")
    assert isinstance(connection.launcher, RecordingLauncher)
    connection.launcher.is_away = True
    write_deployment(connection.lake, Deployment(job="attribute", version="1.0.0", deployed_at=_NOW))
    connection.lake.files.write("_releases/deployed/attribute.json", b"{")
    deduplicate, attribute, _measure = client.get("/api/streams").json()["jobs"]
    assert deduplicate["driver"] == {
        "state": "unknown",
        "process_id": None,
        "since": None,
        "detail": "supervisord at nowhere: it does not answer",
    }
    assert "is damaged" in attribute["problems"][0]


def test_there_is_a_log_of_each_job_and_of_nothing_else(client: TestClient) -> None:
    _log_in("viewer")
    answer = client.get("/api/streams/attribute/log")
    assert answer.text.startswith("attribute: ")
    assert answer.headers["Content-Type"].startswith("text/plain")
    assert client.get("/api/streams/nobody/log").status_code == 404
    assert client.get("/api/streams/..%2F..%2Fetc/log").status_code == 404


def test_the_reports_are_shown_and_can_run_nothing(client: TestClient) -> None:
    _log_in("viewer")
    for name, text in (("index.html", "<h1>Data quality</h1>"), (_PAGE.removeprefix(f"{REPORTS}/"), "<h1>bronze</h1>")):
        answer = client.get(f"/reports/{name}")
        assert answer.text == text
        policy = answer.headers["Content-Security-Policy"]
        assert "script-src" not in policy
        assert "sandbox allow-same-origin;" in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    "name",
    [
        "validated.json",
        "history.json",
        "failing_rows/bronze/_delta_log/00000000000000000000.json",
        "../_progress/deduplicate/wanted.json",
        "..%2F_progress%2Fdeduplicate%2Fwanted.json",
        "data_docs/../validated.json",
        "data_docs/..%2F..%2Findex.html",
        "data_docs//etc/passwd.html",
        "/etc/passwd",
        "%2Fetc%2Fpasswd",
        "data_docs/.hidden.html",
        "data_docs/.%2E/index.html",
        "data_docs/a%00.html",
        "data_docs/a\\b.html",
        "link.html",
        "data_docs/link.html",
        "data_docs/",
        "",
        "index.html/",
        "INDEX.HTML",
    ],
)
def test_nothing_but_pages_of_the_reports_is_served(client: TestClient, connection: LakeConnection, name: str) -> None:
    _log_in("admin")
    outside = connection.lake.path / "_progress" / "secret.html"
    outside.parent.mkdir(exist_ok=True)
    outside.write_text("secret")
    (connection.lake.path / "_progress" / "deduplicate").mkdir()
    (connection.lake.path / "_progress" / "deduplicate" / "wanted.json").write_text("secret")
    for link in ("link.html", "data_docs/link.html"):
        (connection.lake.path / REPORTS / link).symlink_to(outside)
    for file in ("validated.json", "history.json", "data_docs/.hidden.html"):
        (connection.lake.path / REPORTS / file).write_text("secret")
    answer = client.get(f"/reports/{name}")
    assert answer.status_code == 404
    assert "secret" not in answer.text


def test_before_a_validation_the_page_says_how_to_get_one(client: TestClient, connection: LakeConnection) -> None:
    _log_in("viewer")
    assert 'src="reports/index.html"' in client.get("/quality").text
    connection.lake.files.delete([f"{REPORTS}/index.html"])
    assert "Nothing has been validated" in client.get("/quality").text


def test_there_is_no_form_and_no_way_to_change_anything(client: TestClient) -> None:
    _log_in("admin")
    for path in _PAGES:
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            assert client.request(method, path).status_code == 405
    for path in ("/docs", "/redoc", "/openapi.json"):
        assert client.get(path).status_code == 404


@pytest.fixture
def two_lakes(connection: LakeConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    """A browser, not logged in, of an Airflow with two lakes; ``connection`` is that of the second."""
    create_auth_manager()
    monkeypatch.setenv("ADLOOM_LAKES", "eu_=adloom_eu,us_=adloom_us")
    first = LakeConnection(str(tmp_path / "eu"), None, Settings(), open_lake(str(tmp_path / "eu")), RecordingLauncher())
    monkeypatch.setattr(pages, "_known", {})
    monkeypatch.setattr(pages, "connect", lambda lake: {"adloom_eu": first, "adloom_us": connection}[lake.connection])
    with TestClient(app, raise_server_exceptions=False) as browser:
        yield browser
    app.dependency_overrides.clear()


def test_each_lake_has_its_pages_and_links_to_those_of_the_others(
    two_lakes: TestClient, connection: LakeConnection
) -> None:
    _log_in("viewer")
    page = two_lakes.get("/lakes/us_/streams").text
    assert '<a href="../../lakes/eu_/streams">adloom_eu</a>' in page
    assert '<a href="../../lakes/us_/streams" aria-current="page">adloom_us</a>' in page
    assert 'data-root="../../"' in page
    assert 'src="../../static/streams.js"' in page
    data = two_lakes.get("/lakes/us_/api/streams").json()
    assert (data["lake"], data["deploy_dag"]) == (connection.location, "us_deploy_streams")
    assert data["jobs"][0]["dag"] == "us_supervise_deduplicate"
    assert two_lakes.get("/lakes/us_/reports/index.html").text == "<h1>Data quality</h1>"
    assert two_lakes.get("/lakes/eu_/reports/index.html").status_code == 404
    assert 'href="../../../dags/us_validate_tables"' in two_lakes.get("/lakes/us_/quality").text
    assert two_lakes.get("/lakes/asia_/streams").status_code == 404


def test_the_entry_in_the_navigation_leads_to_the_first_lake_of_which_the_user_may_see_something(
    two_lakes: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    _log_in("viewer")
    assert two_lakes.get("/api/streams").json()["deploy_dag"] == "eu_deploy_streams"
    monkeypatch.setattr(_OnlyAttribute, "dag", "us_supervise_attribute")
    monkeypatch.setattr(access, "get_auth_manager", _OnlyAttribute)
    assert [job["dag"] for job in two_lakes.get("/api/streams").json()["jobs"]] == ["us_supervise_attribute"]
    assert "adloom_eu" not in two_lakes.get("/streams").text
    assert two_lakes.get("/lakes/eu_/api/streams").status_code == 403


def test_one_lake_needs_no_choice(client: TestClient) -> None:
    _log_in("viewer")
    assert "<nav" not in client.get("/streams").text
