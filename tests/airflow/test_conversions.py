"""In a browser: the form of `credit_conversions` gives conversions their credit; with bots marked, it is net, too."""

from collections import Counter
from pathlib import Path
from urllib.parse import unquote

import pytest
from playwright.sync_api import expect

from spark_jobs.config.choices import CreditModel
from spark_jobs.contract.events import CONVERSION
from spark_jobs.contract.tables import CREDITS, GROSS_CREDIT_TABLES, MARKS, NET_PATHS, PATHS, SILVER_EVENTS
from spark_jobs.generator.generate import generate
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.lake.layout import Lake
from tests.airflow.embedded import Airflow
from tests.stack.flow import adloom, send, wait_for_rows
from tests.stack.kafka import Kafka
from tests.support.browser import Person, chromium, log_in
from tests.support.lakes import read_table
from tests.support.source_files import read_files

pytestmark = [pytest.mark.airflow, pytest.mark.slow, pytest.mark.timeout(1800)]
_LONGEST_MS = 120_000


def test_conversions_are_credited_from_the_form_and_bots_are_marked(
    airflow: Airflow, kafka: Kafka, topic: str, lake: Lake, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    generate(GeneratorSpec(events=4000, seed=98, files=1, late=0, conversions=1, bots=0.1), source)
    (records,) = read_files(source)
    airflow.pause("validate_tables", is_paused=True)
    airflow.pause_changing("credit_conversions", "mark_invalid")
    airflow.wait_for("deploy_streams", airflow.trigger("deploy_streams"), "success")
    send(kafka, topic, records)
    wait_for_rows(lake, len(records))
    airflow.wait_for("deploy_streams", airflow.trigger("deploy_streams", action="stop"), "success")
    adloom("drain", "--lake", lake.root)
    with chromium() as browser:
        person = log_in(browser, airflow, "admin")
        _seen_in_a_dry_run(person, lake)
        _credited(person, lake)
        _marked(person, lake)


def _seen_in_a_dry_run(person: Person, lake: Lake) -> None:
    form = person.open_form("credit_conversions")
    form.locator("label", has=form.page.locator("input[name=element_dry_run]")).first.click()
    expect(form.get_by_label("Dry run")).to_be_checked()
    person.picture("credit-form")
    run = unquote(person.submit(form, "credit_conversions"))
    person.airflow.wait_for("credit_conversions", run, "success")
    assert "dry run: no table was changed" in person.airflow.log("credit_conversions", run, "credit_conversions")
    assert read_table(lake, PATHS) == []


def _credited(person: Person, lake: Lake) -> None:
    run = unquote(person.submit(person.open_form("credit_conversions"), "credit_conversions"))
    person.airflow.wait_for("credit_conversions", run, "success")
    person.page.goto(f"{person.airflow.address}/dags/credit_conversions/runs/{run}/tasks/credit_conversions")
    expect(person.page.get_by_text("new conversions up to").first).to_be_visible(timeout=_LONGEST_MS)
    person.picture("credit-log")
    orders = {row[1]: row[13] for row in read_table(lake, SILVER_EVENTS) if row[0] == CONVERSION}
    values = {row[0]: row[4] for row in read_table(lake, PATHS)}
    assert len({orders[one] or one for one in orders}) <= len(values) <= len(orders)
    shared: Counter[tuple[str, str]] = Counter()
    for row in read_table(lake, CREDITS):
        shared[row[0], row[1]] += row[7]
    assert dict(shared) == {(one, model.value): value for one, value in values.items() for model in CreditModel}


def _marked(person: Person, lake: Lake) -> None:
    run = person.airflow.trigger("mark_invalid")
    person.airflow.wait_for("mark_invalid", run, "success")
    person.page.goto(f"{person.airflow.address}/dags/mark_invalid/runs/{run}/tasks/mark_invalid")
    expect(person.page.get_by_text("crawler").first).to_be_visible(timeout=_LONGEST_MS)
    person.picture("marks-log")
    marked = {(row[0], row[1]) for row in read_table(lake, MARKS)}
    assert marked
    gross = {table: sorted(map(repr, read_table(lake, table))) for table in GROSS_CREDIT_TABLES}
    person.airflow.wait_for("credit_conversions", person.airflow.trigger("credit_conversions"), "success")
    assert {table: sorted(map(repr, read_table(lake, table))) for table in GROSS_CREDIT_TABLES} == gross
    net = read_table(lake, NET_PATHS)
    assert net
    assert not {(CONVERSION, row[0]) for row in net} & marked
