"""The metrics, asked for as Prometheus does."""

import socket
from datetime import UTC, datetime
from urllib.request import urlopen

import pytest

from spark_jobs.contracts.errors import SettingsError
from spark_jobs.contracts.progress import QueryReport
from spark_jobs.runtime.metrics import serve_metrics

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
    state_rows=42,
)


def test_what_a_query_reports_can_be_asked_for() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with serve_metrics(f"127.0.0.1:{port}", lambda: [_REPORT]), urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        told = answer.read().decode().splitlines()
    labels = '{job="attribute",query="sessionize"}'
    assert f"adloom_query_up{labels} 1.0" in told
    assert f"adloom_state_rows{labels} 42.0" in told
    assert f"adloom_batch_duration_seconds{labels} 1.5" in told
    assert f"adloom_late_rows_total{labels} 3.0" in told
    assert not [line for line in told if line.startswith("adloom_backlog_records{")], "not known: not told"


def test_a_port_that_is_taken_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with (
            pytest.raises(SettingsError, match=f"job.metrics {address} cannot be listened on"),
            serve_metrics(address, list),
        ):
            pass
