"""In a browser: late events brought to gold from the form of `repair_late`, while the jobs run."""

from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote

import pytest
from playwright.sync_api import expect

from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import ATTRIBUTIONS, BRONZE_EVENTS, RESTATEMENTS, SESSIONS, SILVER_EVENTS
from spark_jobs.generator.generate import generate
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.lake.layout import Lake
from spark_jobs.queries.arrivals import spans_read
from spark_jobs.queries.deduplicate.query import QUERY as DEDUPLICATE
from spark_jobs.restatements.plan import plan_key
from tests.airflow.embedded import Airflow
from tests.stack.flow import adloom, send, wait_for_rows
from tests.stack.kafka import Kafka
from tests.support.browser import Person, chromium, log_in
from tests.support.lakes import read_table
from tests.support.oracle import assert_same_rows, expected_tables
from tests.support.servers import wait_until
from tests.support.source_files import read_files

pytestmark = [pytest.mark.airflow, pytest.mark.slow, pytest.mark.timeout(1800)]
_PIECE = 500
_LONGEST_MS = 120_000


def test_late_events_are_repaired_from_the_form(
    airflow: Airflow, kafka: Kafka, topic: str, lake: Lake, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    generate(GeneratorSpec(events=4000, seed=97, files=1, late=0.05), source)
    (records,) = read_files(source)
    airflow.pause("validate_tables", is_paused=True)
    # The first run of `repair_late` finds no lake.
    airflow.pause_changing("repair_late")
    airflow.wait_for("deploy_streams", airflow.trigger("deploy_streams"), "success")
    for first in range(0, len(records), _PIECE):
        send(kafka, topic, records[first : first + _PIECE])
        wait_for_rows(lake, min(first + _PIECE, len(records)))
        # In a batch of its own, so that what comes later can be late.
        wait_until(lambda: _is_deduplicated(lake), _LONGEST_MS / 1000, "deduplicate did not read what is in bronze")
    with chromium() as browser:
        person = log_in(browser, airflow, "admin")
        _seen_in_a_dry_run(person, lake)
        _repaired(person, lake)
        airflow.wait_for("deploy_streams", airflow.trigger("deploy_streams", action="stop"), "success")
        adloom("drain", "--lake", lake.root)
        airflow.wait_for("repair_late", airflow.trigger("repair_late"), "success")
        expected = expected_tables(source, Settings(), datetime.now(UTC))
        for table in (ATTRIBUTIONS, SESSIONS):
            assert_same_rows(read_table(lake, table), expected.rows(table), table)


def _is_deduplicated(lake: Lake) -> bool:
    silver = lake.newest_commit(SILVER_EVENTS.path)
    spans = [] if silver is None else spans_read(lake, DEDUPLICATE, -1, until=silver)
    return bool(spans) and spans[-1].last == lake.newest_commit(BRONZE_EVENTS.path)


def _seen_in_a_dry_run(person: Person, lake: Lake) -> None:
    form = person.open_form("repair_late")
    form.locator("label", has=form.page.locator("input[name=element_dry_run]")).first.click()
    expect(form.get_by_label("Dry run")).to_be_checked()
    person.picture("repair-form")
    run = unquote(person.submit(form, "repair_late"))
    person.airflow.wait_for("repair_late", run, "success")
    assert "dry run: no table was changed" in person.airflow.log("repair_late", run, "repair_late")
    assert lake.files.read(plan_key(1)) is None
    assert read_table(lake, RESTATEMENTS) == []


def _repaired(person: Person, lake: Lake) -> None:
    run = unquote(person.submit(person.open_form("repair_late"), "repair_late"))
    person.airflow.wait_for("repair_late", run, "success")
    assert read_table(lake, RESTATEMENTS)
    person.page.goto(f"{person.airflow.address}/dags/repair_late/runs/{run}/tasks/repair_late")
    expect(person.page.get_by_text("attributions").first).to_be_visible(timeout=_LONGEST_MS)
    person.picture("repair-log")
