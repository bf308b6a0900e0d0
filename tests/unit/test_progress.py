"""The report of a query after each batch, and the status page that shows it."""

import io
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import cast
from uuid import UUID

import pytest
from pyspark.sql.streaming.listener import QueryProgressEvent, QueryStartedEvent, StreamingQueryProgress
from rich.console import Console

from spark_jobs.cli.status import status, status_page
from spark_jobs.contract.tables import SILVER_EVENTS
from spark_jobs.errors import LakeError
from spark_jobs.lake.layout import Lake, commit_key
from spark_jobs.lake.open import open_lake
from spark_jobs.queries.places import progress_key
from spark_jobs.streams import progress
from spark_jobs.streams.progress import ProgressFiles, after_batch, idle, parse_progress
from spark_jobs.streams.reports import QueryReport, QueryState

_NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
_START = QueryReport(
    job="deduplicate", query="ingest", version="1", process_id=7, started_at=_NOW, updated_at=_NOW, total_input_rows=10
)


def _batch(**changes: object) -> StreamingQueryProgress:
    """A batch as Spark reports it."""
    source = {
        "description": "KafkaV2[Subscribe[events]]",
        "startOffset": '{"events":{"0":0,"1":0}}',
        "endOffset": '{"events":{"0":5,"1":9}}',
        "latestOffset": '{"events":{"0":7,"1":9}}',
        "numInputRows": 14,
        "inputRowsPerSecond": 3.5,
        "processedRowsPerSecond": 7.0,
        "metrics": {},
    }
    batch: dict[str, object] = {
        "id": str(UUID(int=1)),
        "runId": str(UUID(int=2)),
        "name": "ingest",
        "timestamp": "2026-03-01T12:00:00.000Z",
        "batchId": 4,
        "batchDuration": 2000,
        "durationMs": {"addBatch": 1800},
        "eventTime": {},
        "stateOperators": [],
        "sources": [source],
        "sink": {"description": "ForeachBatchSink", "numOutputRows": -1},
        "numInputRows": 14,
        "inputRowsPerSecond": 3.5,
        "processedRowsPerSecond": 7.0,
        "observedMetrics": {},
    }
    return StreamingQueryProgress.fromJson(batch | changes)


def test_the_backlog_of_kafka_is_what_arrived_and_was_not_read() -> None:
    report = after_batch(_START, _batch(), _NOW)
    assert (report.batch_id, report.input_rows, report.total_input_rows) == (4, 14, 24)
    assert report.backlog_records == 2
    assert report.backlog_bytes is None
    assert report.phases_ms == {"addBatch": 1800}


def test_rows_come_in_over_the_time_from_batch_to_batch_however_often_the_query_polls_in_between() -> None:
    first = after_batch(_START, _batch(), _NOW + timedelta(seconds=7))
    assert first.input_rows_per_s == 2
    polled = idle(first, _NOW + timedelta(seconds=17))
    assert polled.input_rows_per_s == 0
    second = after_batch(polled, _batch(inputRowsPerSecond=1400.0), _NOW + timedelta(seconds=35))
    assert second.input_rows_per_s == 0.5


def test_what_waits_in_a_table_is_counted_in_commits_and_when_it_will_be_read_is_foretold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, clock = open_lake(str(tmp_path)), [_NOW]
    for version in range(101):
        lake.files.write(commit_key(SILVER_EVENTS, version), b"{}")
    monkeypatch.setattr(progress, "datetime", SimpleNamespace(now=lambda _: clock[0], fromisoformat=None))
    listener, run = ProgressFiles(lake), UUID(int=2)
    listener.onQueryStarted(cast("QueryStartedEvent", SimpleNamespace(name="sessionize", runId=run)))
    found = []
    for reached in (20, 40, 60, 100):
        end = json.dumps({"reservoirVersion": reached + 1, "index": -1})
        source: dict[str, object] = {
            "description": "table",
            "startOffset": None,
            "endOffset": end,
            "latestOffset": None,
            "metrics": {},
        }
        source |= {"numInputRows": 5, "inputRowsPerSecond": 1.0, "processedRowsPerSecond": 1.0}
        clock[0] += timedelta(seconds=10)
        listener.onQueryProgress(
            cast("QueryProgressEvent", SimpleNamespace(progress=_batch(name="sessionize", sources=[source])))
        )
        report = listener.report("sessionize")
        assert report
        found.append((report.backlog_commits, report.caught_up_at))
    assert found == [
        (80, None),
        (60, _NOW + timedelta(seconds=20 + 30)),
        (40, _NOW + timedelta(seconds=30 + 20)),
        (0, None),
    ]


def _as_text(progress: dict[str, object]) -> str:
    return json.dumps(progress, default=str)


def test_figures_that_spark_omits_count_as_zero() -> None:
    """In a first batch rates are missing, and offsets are JSON within the JSON."""
    source: dict[str, object] = {"description": "KafkaV2[Subscribe[events]]", "numInputRows": 5, "metrics": {}}
    source |= {"startOffset": None, "endOffset": {"events": {"0": 5}}, "latestOffset": {"events": {"0": 7}}}
    figures = {key: value for key, value in _batch().items() if not key.endswith("RowsPerSecond")}
    batch = parse_progress(_as_text(figures | {"sources": [source]}))
    report = after_batch(_START, batch, _NOW)
    assert report.backlog_records == 2
    assert (report.input_rows, report.processed_rows_per_s) == (14, 0)
    source["latestOffset"] = None
    assert after_batch(_START, parse_progress(_as_text(figures | {"sources": [source]})), _NOW).backlog_records == 0
    del source["latestOffset"]
    assert after_batch(_START, parse_progress(_as_text(figures | {"sources": [source]})), _NOW).backlog_records == 0


def test_the_watermark_lags_behind_now_and_is_none_before_there_is_one() -> None:
    before = after_batch(_START, _batch(eventTime={"watermark": "1970-01-01T00:00:00.000Z"}), _NOW)
    assert before.watermark is None
    assert before.watermark_lag_s is None
    times = {"watermark": "2026-03-01T11:00:00.000Z", "max": "2026-03-01T11:59:00.000Z"}
    report = after_batch(before, _batch(eventTime=times), _NOW)
    assert report.watermark_lag_s == 3600
    assert report.newest_event_time == _NOW - timedelta(minutes=1)
    later = after_batch(report, _batch(eventTime=times | {"max": "2026-03-01T11:30:00.000Z"}), _NOW)
    assert later.newest_event_time == _NOW - timedelta(minutes=1), "an older event does not move it back"


@pytest.mark.parametrize("rate", [7.0, None, float("nan"), float("inf")])
def test_a_report_reads_back_as_it_was_written(rate: float | None) -> None:
    report = after_batch(_START, _batch(inputRowsPerSecond=rate, processedRowsPerSecond=rate), _NOW)
    assert QueryReport.model_validate_json(report.model_dump_json()) == report


def test_the_page_shows_each_query_and_its_last_error(tmp_path: Path) -> None:
    lake = open_lake(str(tmp_path))
    failed = after_batch(_START, _batch(), _NOW).model_copy(
        update={"state": QueryState.FAILED, "last_error": "the disk is full"}
    )
    lake.files.write(progress_key("ingest"), failed.model_dump_json().encode())
    lake.files.write(progress_key("attribute"), b"{half a fi")
    page = _printed(lake)
    assert "ingest" in page
    assert "failed" in page
    assert "2 records" in page
    assert "1h30min" in page
    assert "ingest: the disk is full" in page
    assert "sessionize" not in page, "it has not run"


def test_for_an_unused_lake_the_page_says_what_to_start(tmp_path: Path) -> None:
    assert "no query has run" in _printed(open_lake(str(tmp_path)))
    with pytest.raises(LakeError, match="no lake at"):
        status(str(tmp_path / "nowhere"), once=True, config=None)


def _printed(lake: Lake) -> str:
    """The page an hour and a half after _NOW."""
    console = Console(file=io.StringIO(), width=120)
    console.print(status_page(lake, _NOW + timedelta(minutes=90)))
    output: str = console.file.getvalue()  # type: ignore[attr-defined]
    return output
