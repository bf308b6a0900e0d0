"""In a browser: deployed by the form, watched, killed, marked and seen to stop; a fault found; checkpoints cleaned."""

import json
import urllib.error
from pathlib import Path
from urllib.parse import unquote

import pytest
from playwright.sync_api import expect

from spark_jobs.contract.tables import ATTRIBUTIONS, BRONZE_EVENTS
from spark_jobs.ingest.input_files import read_records
from spark_jobs.lake.layout import Lake, commit_key
from spark_jobs.queries.places import checkpoint_in_use, checkpoint_key
from tests.airflow.embedded import Airflow
from tests.airflow.parts import PARTS, WATCHED, wait_for_one, wait_until_watched
from tests.stack.flow import adloom, send, wait_for_rows
from tests.stack.kafka import Kafka
from tests.support.browser import Person, chromium, log_in
from tests.support.equality import assert_lake_equals_oracle, generate_source
from tests.support.lakes import read_table

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(1500)]

_LONGEST_MS = 120_000


def test_what_an_operator_does_in_a_day(airflow: Airflow, kafka: Kafka, topic: str, lake: Lake, tmp_path: Path) -> None:
    source = generate_source(tmp_path / "source", events=3000, seed=96)
    records = list(read_records(source))
    send(kafka, topic, records[: len(records) // 2])
    # Otherwise new versions of gold would start validations in the middle of all this.
    airflow.pause("validate_tables", is_paused=True)
    airflow.pause_changing("clean_checkpoints")
    with chromium() as browser:
        _refused(log_in(browser, airflow, "viewer"))
        person = log_in(browser, airflow, "admin")
        _connection_offered(person)
        _deployed(person)
        _seen_to_run(person)
        for part in ("driver", "triggerer"):
            PARTS[part](airflow)
        send(kafka, topic, records[len(records) // 2 :])
        wait_for_rows(lake, len(records))
        _marked_and_seen_to_stop(person)
        assert airflow.drivers("attribute") == []
        assert not airflow.is_wanted("attribute")
        wait_for_one(airflow, WATCHED)
        airflow.wait_for("deploy_streams", airflow.trigger("deploy_streams", action="stop"), "success")
        assert airflow.drivers("deduplicate") == []
        adloom("drain", "--lake", lake.root)
        assert_lake_equals_oracle(lake, source)
        _planted_fault_found(person, lake)
        _checkpoint_cleaned(person, lake)
        assert len(read_table(lake, BRONZE_EVENTS)) == len(records)


def _refused(viewer: Person) -> None:
    """A viewer sees the pages, and cannot trigger anything."""
    expect(viewer.open_page("Streams").get_by_role("heading", name="deduplicate").first).to_be_visible()
    expect(viewer.open_page("Data quality").get_by_text("Nothing has been validated")).to_be_visible()
    form = viewer.open_form("deploy_streams")
    with viewer.page.expect_response("**/dagRuns") as refused:
        form.get_by_role("button", name="Trigger").click()
    assert refused.value.status == 403
    with pytest.raises(urllib.error.HTTPError, match=r"40\d|422"):
        viewer.airflow.trigger("deploy_streams", release="1.0.0; touch pwned")
    assert viewer.airflow.call("GET", "/dags/deploy_streams/dagRuns")["total_entries"] == 0


def _connection_offered(person: Person) -> None:
    """The form of a connection has the type, names its fields as adloom does, and hides what is secret."""
    person.page.goto(f"{person.airflow.address}/connections")
    person.page.get_by_role("button", name="Add Connection").click()
    form = person.page.get_by_role("dialog")
    form.get_by_role("combobox").click()
    person.page.get_by_role("option", name="adloom", exact=True).click()
    for label in ("Lake", "Access key", "Secret key"):
        expect(form.get_by_label(label, exact=True)).to_be_visible()
    expect(form.get_by_label("Secret key", exact=True)).to_have_attribute("type", "password")
    person.picture("connection-form")
    form.get_by_role("button", name="Extra Fields", exact=True).click()
    expect(form.locator("input[name=element_s3__endpoint]")).to_be_visible()
    for name in ("supervisor_password", "kafka__password"):
        expect(form.locator(f"input[name=element_{name}]")).to_have_attribute("type", "password")


def _deployed(person: Person) -> None:
    form = person.open_form("deploy_streams")
    expect(form.get_by_text("Reset checkpoints that the release cannot use.")).to_be_visible()
    run = person.submit(form, "deploy_streams")
    person.airflow.wait_for("deploy_streams", unquote(run), "success")


def _seen_to_run(person: Person) -> None:
    streams = person.open_page("Streams")
    for job in ("deduplicate", "attribute"):
        card = streams.locator(f"section[data-job={job}]")
        expect(card.locator(".job .tag")).to_have_text("running", timeout=_LONGEST_MS)
        expect(card.locator(".job")).to_contain_text("release 0.1.0+")
    for query in ("ingest", "deduplicate", "attribute", "sessionize"):
        row = streams.locator(f".row[data-query={query}]")
        expect(row.locator(".tag").first).to_have_text("running", timeout=_LONGEST_MS)
        # The page refreshes itself.
        expect(row.locator(".spark .line").first).to_be_attached(timeout=_LONGEST_MS)
    expect(streams.locator(".row[data-query=ingest]").locator(".soft").first).to_contain_text("batch")
    streams.get_by_role("button", name="s log").first.click()
    expect(streams.locator("pre.log")).to_contain_text("ingest: batch", timeout=_LONGEST_MS)
    streams.get_by_role("button", name="Hide the log").click()
    person.click_through_refresh(streams.get_by_role("link", name="Supervision").first, "**/api/streams?*")
    person.page.wait_for_url("**/dags/supervise_deduplicate")


def _marked_and_seen_to_stop(person: Person) -> None:
    wait_until_watched(person.airflow, "attribute")
    (run,) = person.airflow.running("supervise_attribute")
    person.mark_failed("supervise_attribute", run, "supervise")
    card = person.open_page("Streams").locator("section[data-job=attribute]")
    expect(card.locator(".job .tag")).to_have_text("stopped", timeout=_LONGEST_MS)
    expect(card).to_contain_text("Stopped on purpose: its task was marked in Airflow")


def _planted_fault_found(person: Person, lake: Lake) -> None:
    """Every attribution in one file is duplicated: validation must find it."""
    _plant_a_second_copy(lake)
    person.airflow.pause("validate_tables", is_paused=False)
    run = person.airflow.trigger("validate_tables")
    person.airflow.wait_for("validate_tables", run, "failed")
    report = person.open_page("Data quality").frame_locator("#report")
    expect(report.locator(".banner")).to_contain_text("Failed", timeout=_LONGEST_MS)
    expect(report.locator("body")).to_contain_text("A click, by id and time, counts once.")
    card = report.locator("article", has=report.get_by_role("heading", name="attributions"))
    card.get_by_role("link", name="Every expectation").click()
    expect(report.locator("body")).to_contain_text("click_unique", timeout=_LONGEST_MS)
    expect(report.locator(".fa-times, .text-danger").first).to_be_visible()


def _plant_a_second_copy(lake: Lake) -> None:
    newest = lake.newest_commit(ATTRIBUTIONS.path)
    assert newest is not None
    commits = [
        (lake.files.read(commit_key(ATTRIBUTIONS, version)) or b"").splitlines() for version in range(newest + 1)
    ]
    added = [json.loads(line)["add"] for lines in commits for line in lines if b'"add"' in line]
    largest = max(added, key=lambda add: add["size"])
    data = lake.files.read(f"{ATTRIBUTIONS.path}/{unquote(largest['path'])}")
    assert data
    folder, _, name = largest["path"].rpartition("/")
    copy = {**largest, "path": f"{folder}/copy-of-{name}", "dataChange": True}
    lake.files.write(f"{ATTRIBUTIONS.path}/{unquote(copy['path'])}", data)
    lake.files.write(commit_key(ATTRIBUTIONS, newest + 1), json.dumps({"add": copy}).encode() + b"\n")


def _checkpoint_cleaned(person: Person, lake: Lake) -> None:
    adloom("checkpoints", "reset", "sessionize", "--lake", lake.root)
    old = checkpoint_key("sessionize", 1)
    assert list(lake.files.walk(old))

    form = person.open_form("clean_checkpoints")
    form.locator("label", has=form.page.locator("input[name=element_dry_run]")).first.click()
    expect(form.get_by_label("Dry run")).to_be_checked()
    run = unquote(person.submit(form, "clean_checkpoints"))
    person.airflow.wait_for("clean_checkpoints", run, "success")
    assert "would go" in person.airflow.log("clean_checkpoints", run, "clean_checkpoints")
    assert list(lake.files.walk(old)), "a dry run"

    run = unquote(person.submit(person.open_form("clean_checkpoints"), "clean_checkpoints"))
    person.airflow.wait_for("clean_checkpoints", run, "success")
    assert "1 removed" in person.airflow.log("clean_checkpoints", run, "clean_checkpoints")
    assert not list(lake.files.walk(old))
    assert checkpoint_in_use(lake, "sessionize") == 2
