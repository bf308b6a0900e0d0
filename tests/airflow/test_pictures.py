"""The pictures in the docs: all three jobs under live traffic, and their tables validated: `make pictures`."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import expect

from spark_jobs.contracts.jobs import JOB_NAMES
from spark_jobs.queries import JOB_OF_QUERY
from tests.airflow.embedded import Airflow
from tests.stack.kafka import Kafka
from tests.support.browser import PICTURES, chromium, log_in
from tests.support.drivers import ADLOOM

_RATE, _EVENTS = 100, 90_000
_LONGEST_MS, _TRAFFIC_MS = 300_000, 240_000

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.slow,
    pytest.mark.timeout(2400),
    pytest.mark.skipif(not PICTURES, reason="PICTURES names no folder"),
]


@pytest.fixture
def settings(settings: dict[str, str]) -> dict[str, str]:
    return settings | {"ADLOOM_JOBS": ",".join(JOB_NAMES), "ADLOOM_JOB__TRIGGER": "interval"}


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
            person.page.wait_for_timeout(_TRAFFIC_MS)
            person.picture("streams")
        airflow.wait_for("deploy_streams", airflow.trigger("deploy_streams", action="stop"), "success")
        airflow.pause("validate_tables", is_paused=False)
        airflow.wait_for("validate_tables", airflow.trigger("validate_tables"), "success")
        report = person.open_page("Data quality").frame_locator("#report")
        expect(report.locator(".banner")).to_contain_text("Passed", timeout=_LONGEST_MS)
        person.page.wait_for_timeout(1500)
        person.picture("quality")


@contextmanager
def _traffic(kafka: Kafka, topic: str) -> Iterator[None]:
    words = ("--kafka", kafka.address, "--topic", topic, "--rate", str(_RATE), "--events", str(_EVENTS))
    sender = subprocess.Popen([*ADLOOM, "generate", *words], stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        sender.terminate()
        sender.wait()
