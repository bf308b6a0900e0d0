"""The pictures in the docs: `make pictures`. Each test takes its own; the README has the moving ones."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import FrameLocator, expect

from infra.docs.demo_picture import TITLE, demo_frames, record_demo
from infra.docs.moving import write_moving
from spark_jobs.lake.layout import Lake
from spark_jobs.queries.jobs import JOB_NAMES
from spark_jobs.queries.registry import JOB_OF_QUERY
from tests.airflow.embedded import Airflow
from tests.stack.flow import adloom
from tests.stack.kafka import Kafka
from tests.support.browser import PICTURES, Person, chromium, log_in
from tests.support.drivers import ADLOOM
from tests.support.film import Film

_RATE, _EVENTS = 100, 90_000
_LONGEST_MS = 300_000
_LIVE_FRAMES, _LIVE_EVERY_S, _LIVE_SHOWN_S = 60, 3, 0.25
"""Of Streams: three minutes in fifteen seconds."""
_LOOK_S = 2.5

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.slow,
    pytest.mark.timeout(2400),
    pytest.mark.skipif(not PICTURES, reason="PICTURES names no folder"),
]


@pytest.fixture
def settings(settings: dict[str, str]) -> dict[str, str]:
    return settings | {"ADLOOM_JOBS": ",".join(JOB_NAMES), "ADLOOM_JOB__TRIGGER": "interval"}


def test_the_demo_in_a_terminal() -> None:
    pieces = record_demo()
    assert "sessions" in "".join(piece.text for piece in pieces)
    with chromium() as browser:
        page = browser.new_context(offline=True).new_page()
        write_moving(TITLE, list(demo_frames(page, pieces)), Path(str(PICTURES)) / "demo.webp")


def test_the_pages_under_live_traffic(airflow: Airflow, kafka: Kafka, topic: str) -> None:
    # Validations would start with each new version of gold, and take the processors from the jobs.
    airflow.pause("validate_tables", is_paused=True)
    with chromium() as browser:
        person = log_in(browser, airflow, "admin")
        with _traffic(kafka, topic):
            airflow.wait_for("deploy_streams", airflow.trigger("deploy_streams"), "success")
            streams = person.open_page("Streams")
            for query in JOB_OF_QUERY:
                row = streams.locator(f".row[data-query={query}]")
                expect(row.locator(".spark .line").first).to_be_attached(timeout=_LONGEST_MS)
            _film_streams(person, streams)
            person.picture("streams")
        airflow.wait_for("deploy_streams", airflow.trigger("deploy_streams", action="stop"), "success")


def _film_streams(person: Person, streams: FrameLocator) -> None:
    faster = round(_LIVE_EVERY_S / _LIVE_SHOWN_S)
    minutes = _LIVE_FRAMES * _LIVE_EVERY_S // 60
    caption = f"{_RATE} events per second: {minutes} minutes, {faster} times as fast"
    film = Film(person.page)
    for number in range(_LIVE_FRAMES):
        if number == _LIVE_FRAMES * 2 // 3:
            film.scroll_to(streams.locator("section[data-job=measure]"), caption, _LIVE_SHOWN_S)
        film.take(caption, _LIVE_SHOWN_S)
        person.page.wait_for_timeout(_LIVE_EVERY_S * 1000)
    film.write("streams", "Streams\nevery query of the three jobs, live, in Airflow")


def test_three_days_of_events(airflow: Airflow, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A batch for each file, as if files arrived one by one; otherwise nothing would be late.
    monkeypatch.setenv("ADLOOM_INGEST__MAX_BYTES_PER_BATCH", "1")
    events = ("--events", "60000", "--hours", "72", "--files", "6", "--late", "0.004", "--seed", "1")
    adloom("generate", "--out", str(tmp_path / "events"), *events)
    adloom("run", "--source", str(tmp_path / "events"), "--lake", lake.root, "--drain")
    for dag in ("repair_late", "close_days", "validate_tables"):
        airflow.wait_for(dag, airflow.trigger(dag), "success")
    with chromium() as browser:
        person = log_in(browser, airflow, "admin")
        report = person.open_page("Data quality").frame_locator("#report")
        expect(report.locator(".banner")).to_contain_text("Passed", timeout=_LONGEST_MS)
        person.page.wait_for_timeout(1500)
        person.picture("quality")
        _film_quality(person, report)


def _film_quality(person: Person, report: FrameLocator) -> None:
    film = Film(person.page)
    film.take("The report of the last validation: what was checked, and what was found", 3)
    for part, caption in (
        (".pair", "Where every record went: none is lost without a trace"),
        ("#days", "Which days are done, in each table"),
        ("#restated", "What was corrected afterwards, and why"),
        ("#rejected", "Which records did not fit, by source and reason"),
    ):
        film.scroll_to(report.locator(part), caption, _LOOK_S)
    film.scroll_to(report.locator("header"), "Charts of the same tables are a click away", 1)
    report.get_by_role("link", name="Overview: charts of the tables").click()
    expect(report.get_by_role("heading", name="Overview")).to_be_visible()
    film.take("Charts of the tables", _LOOK_S)
    for part in ("#ctr", "#delays"):
        film.scroll_to(report.locator(part), "Charts of the tables", _LOOK_S)
    report.get_by_role("link", name="Data quality: can these numbers be trusted?").click()
    card = report.locator("article", has=report.get_by_role("heading", name="attributions"))
    card.get_by_role("link", name="Every expectation").click()
    expect(report.locator("body")).to_contain_text("click_unique", timeout=_LONGEST_MS)
    film.take("Every expectation of a table, and what was found", _LOOK_S)
    film.scroll_to(report.locator(".ge-section").nth(2), "Every expectation of a table, and what was found", _LOOK_S)
    film.write("quality", "Data quality\ncan these numbers be trusted?")


@contextmanager
def _traffic(kafka: Kafka, topic: str) -> Iterator[None]:
    words = ("--kafka", kafka.address, "--topic", topic, "--rate", str(_RATE), "--events", str(_EVENTS))
    sender = subprocess.Popen([*ADLOOM, "generate", *words], stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        sender.terminate()
        sender.wait()
