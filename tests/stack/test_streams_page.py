"""The page Streams in a browser, over a lake with a job that is behind and one that has failed."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import uvicorn
from airflow.api_fastapi.app import create_auth_manager
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from airflow.api_fastapi.core_api.security import get_user
from playwright.sync_api import Page, expect

from ad_dags.connection.lake_connection import LakeConnection
from ad_dags.drivers.launchers import Driver, DriverState
from ad_dags.pages.app import app, own_connection
from spark_jobs.config.settings import Settings
from spark_jobs.lake.open import open_lake
from spark_jobs.lake.records import write_record
from spark_jobs.queries.jobs import ATTRIBUTE_JOB, MEASURE_JOB
from spark_jobs.queries.places import progress_key
from spark_jobs.queries.registry import JOB_OF_QUERY, QUERIES_OF_JOB
from spark_jobs.streams.desired_state import RunState, set_desired
from spark_jobs.streams.reports import QueryReport, QueryState
from tests.dags.fakes import RecordingLauncher
from tests.support.browser import chromium
from tests.support.servers import free_port, wait_until

pytestmark = pytest.mark.stack

_BEGUN = datetime.now(UTC) - timedelta(hours=3)
_WHY = "exit status 1: the store does not answer"


class _Launcher(RecordingLauncher):
    """Drivers of which that of ``measure`` has failed."""

    def inspect(self, job: str) -> Driver:
        if job == MEASURE_JOB:
            return Driver(job, DriverState.FAILED, None, None, _WHY)
        return Driver(job, DriverState.RUNNING, 1, _BEGUN, "")


@pytest.fixture
def connection(tmp_path: Path) -> LakeConnection:
    lake, now = open_lake(str(tmp_path / "lake")), datetime.now(UTC)
    for query, job in JOB_OF_QUERY.items():
        has_failed = job == MEASURE_JOB
        report = QueryReport(
            job=job,
            query=query,
            version="1.0.0",
            process_id=1,
            started_at=_BEGUN,
            updated_at=now,
            batch_id=7,
            state=QueryState.FAILED if has_failed else QueryState.RUNNING,
            last_error=_WHY if has_failed else None,
        )
        behind = {"backlog_commits": 1800, "caught_up_at": now + timedelta(minutes=90)}
        long_batch = {"busy_since": now - timedelta(minutes=3), "tasks_done": 312, "tasks": 800}
        changes = {**behind, **long_batch} if job == ATTRIBUTE_JOB else {}
        write_record(lake, progress_key(query), report.model_copy(update=changes))
        set_desired(lake, job, RunState.FAILED if has_failed else RunState.RUNNING, "restarts did not help", now)
    return LakeConnection(str(tmp_path / "lake"), None, Settings(), lake, _Launcher())


@pytest.fixture
def page(connection: LakeConnection) -> Iterator[Page]:
    """Streams, as someone sees it who may only look."""
    create_auth_manager()
    app.dependency_overrides[own_connection] = lambda: connection
    app.dependency_overrides[get_user] = lambda: SimpleAuthManagerUser(username="somebody", role="viewer")
    port = free_port()
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        wait_until(lambda: server.started, 60, "the pages are not served")
        with chromium() as browser:
            page = browser.new_page(viewport={"width": 1440, "height": 1000})
            page.goto(f"http://127.0.0.1:{port}/streams")
            yield page
    finally:
        server.should_exit = True
        thread.join()
        app.dependency_overrides.clear()


def test_it_says_at_first_sight_how_far_a_job_is_behind_and_why_one_has_failed(page: Page) -> None:
    """Before, until it was refreshed, it said that a backlog would be gone in 57 years."""
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.reload()
    expect(page.get_by_text("1,800 commits").first).to_be_visible()
    behind = len(QUERIES_OF_JOB[ATTRIBUTE_JOB])
    found = page.get_by_text("gone in").all_inner_texts()  # before it is refreshed
    assert [text.partition(" h ")[0] for text in found] == ["gone in 1"] * behind
    expect(page.get_by_text("312 of 800 tasks").first).to_be_visible()
    expect(page.get_by_text("Once the cause is gone, trigger supervise_measure")).to_be_visible()
    expect(page.get_by_text(_WHY).first).to_be_visible()
    assert errors == []
