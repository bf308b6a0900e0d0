"""The metrics, asked for as Prometheus does."""

import json
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.request import urlopen

import pytest
from prometheus_client.exposition import generate_latest

from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import BRONZE_EVENTS, SILVER_EVENTS
from spark_jobs.errors import SettingsError
from spark_jobs.lake.open import open_lake
from spark_jobs.lake.records import write_record
from spark_jobs.ledger.advance import advance
from spark_jobs.operations.exporter.lake_metrics import LakeMetrics
from spark_jobs.queries.places import progress_key
from spark_jobs.streams.desired_state import RunState, Watch, set_desired, write_watch
from spark_jobs.streams.metrics import QueryMetrics, serve_metrics
from spark_jobs.streams.reports import DriverReport, QueryReport, driver_report_key
from tests.support.exposed import VALIDATION
from tests.support.servers import free_port
from tests.support.written_lakes import WrittenLake, at

_NOW = datetime(2026, 3, 1, tzinfo=UTC)
_REPORT = QueryReport(
    job="attribute",
    query="sessionize",
    version="1",
    process_id=1,
    started_at=_NOW,
    updated_at=_NOW,
    batch_ms=1500,
    late_rows=3,
    quarantined_rows=5,
    state_rows=42,
)


def test_what_a_query_reports_can_be_asked_for() -> None:
    port = free_port()
    with (
        serve_metrics(f"127.0.0.1:{port}", QueryMetrics(lambda: [_REPORT])),
        urlopen(f"http://127.0.0.1:{port}/metrics") as answer,
    ):
        exported = answer.read().decode().splitlines()
    labels = '{job="attribute",query="sessionize"}'
    assert f"adloom_query_up{labels} 1.0" in exported
    assert f"adloom_state_rows{labels} 42.0" in exported
    assert f"adloom_batch_duration_seconds{labels} 1.5" in exported
    assert f"adloom_late_rows_total{labels} 3.0" in exported
    assert f"adloom_quarantined_rows_total{labels} 5.0" in exported
    assert not [line for line in exported if line.startswith("adloom_backlog_records{")], "unknown, so not exported"


def test_a_port_that_is_taken_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with (
            pytest.raises(SettingsError, match=f"job.metrics {address}: cannot listen there"),
            serve_metrics(address, QueryMetrics(list)),
        ):
            pass


def test_of_a_lake_it_is_told_what_is_wanted_when_it_was_seen_and_what_validation_found(tmp_path: Path) -> None:
    lake = open_lake(str(tmp_path))
    write_record(lake, progress_key("sessionize"), _REPORT)
    write_record(lake, progress_key("attribute"), _REPORT.model_copy(update={"query": "attribute"}))
    set_desired(lake, "attribute", RunState.RUNNING, "a test", _NOW)
    exported = generate_latest(LakeMetrics(lake)).decode().splitlines()
    assert "adloom_lake_readable 1.0" in exported
    assert 'adloom_job_wanted{job="attribute"} 1.0' in exported
    assert 'adloom_job_wanted{job="deduplicate"} 0.0' in exported
    (seen,) = (line for line in exported if line.startswith('adloom_job_last_seen_seconds{job="attribute"}'))
    assert float(seen.split()[1]) == _NOW.timestamp()
    assert 'adloom_job_last_seen_seconds{job="deduplicate"} 0.0' in exported, "never seen"
    assert 'adloom_job_failed{job="attribute"} 0.0' in exported
    assert 'adloom_job_restarts{job="attribute"} 0.0' in exported
    assert not [line for line in exported if line.startswith("adloom_validation")], "never validated"
    lake.files.write("_reports/history.json", json.dumps({"validations": [VALIDATION]}).encode())
    exported = generate_latest(LakeMetrics(lake)).decode().splitlines()
    assert 'adloom_validation_failed{severity="critical"} 2.0' in exported
    assert 'adloom_validation_failed{severity="warning"} 1.0' in exported


def test_of_a_job_it_is_told_whether_its_driver_is_alive_and_restarts_help(tmp_path: Path) -> None:
    """A batch may take an hour: its query reports nothing meanwhile, but its driver does."""
    lake, later = open_lake(str(tmp_path)), _NOW + timedelta(hours=1)
    write_record(lake, progress_key("attribute"), _REPORT.model_copy(update={"query": "attribute"}))
    alive = DriverReport(process_id=1, version="1", started_at=_NOW, updated_at=later, progress_at=later)
    write_record(lake, driver_report_key("attribute"), alive)
    set_desired(lake, "attribute", RunState.FAILED, "it has ended again", later)
    write_watch(lake, "attribute", Watch(name="a test", looked_at=later, restarts=4))
    exported = generate_latest(LakeMetrics(lake)).decode().splitlines()
    (seen,) = (line for line in exported if line.startswith('adloom_job_last_seen_seconds{job="attribute"}'))
    assert float(seen.split()[1]) == later.timestamp()
    assert 'adloom_job_failed{job="attribute"} 1.0' in exported
    assert 'adloom_job_restarts{job="attribute"} 4.0' in exported
    assert 'adloom_job_wanted{job="attribute"} 0.0' in exported


def test_a_lake_that_cannot_be_read_is_told_to_be_so(tmp_path: Path) -> None:
    lake = open_lake(str(tmp_path))
    lake.files.write("_reports/history.json", b"{")
    exported = generate_latest(LakeMetrics(lake)).decode().splitlines()
    assert "adloom_lake_readable 0.0" in exported
    assert not [line for line in exported if line.startswith("adloom_job")]


def test_of_the_ledger_each_kind_is_told(tmp_path: Path) -> None:
    written = WrittenLake(open_lake(str(tmp_path)))
    good = {
        "event_type": "click",
        "event_id": "a",
        "event_time": at(0),
        "ingest_time": at(1),
        "event_date": at(0).date(),
        "verdict": "ok",
        "source": "t/0/1",
        "source_name": "ads",
    }
    bad = {**good, "verdict": "missing_user_id", "source": "t/0/2"}
    written.batch(BRONZE_EVENTS, "ingest", [good, good, {**good, "event_id": "lost"}, bad])
    written.batch(SILVER_EVENTS, "deduplicate", [good], reached=0)
    list(advance(Settings(), written.lake, lambda: _NOW))
    exported = generate_latest(LakeMetrics(written.lake)).decode().splitlines()
    for line in (
        "adloom_ledger_received 4.0",
        "adloom_ledger_ok 3.0",
        "adloom_ledger_kept 1.0",
        "adloom_ledger_duplicates 1.0",
        'adloom_ledger_quarantined{source="ads",verdict="missing_user_id"} 1.0',
        'adloom_ledger_late{fate="pending"} 0.0',
        'adloom_ledger_unaccounted{account="records"} 1.0',
        'adloom_ledger_surplus{account="records"} 0.0',
    ):
        assert line in exported
    (at_line,) = (line for line in exported if line.startswith("adloom_ledger_time_seconds "))
    assert float(at_line.split()[1]) == _NOW.timestamp()
