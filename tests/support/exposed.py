"""The metrics that adloom serves to Prometheus, asked of what serves them."""

import tempfile
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from typing import Any

from prometheus_client.registry import Collector

from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import BRONZE_EVENTS, SESSIONS, SILVER_EVENTS
from spark_jobs.credit.plan import CreditedCampaign, CreditFeed
from spark_jobs.lake.open import open_lake
from spark_jobs.lake.records import write_record
from spark_jobs.lake.store.files import json_bytes
from spark_jobs.ledger.advance import advance
from spark_jobs.operations.exporter.gold_metrics import GoldMetrics
from spark_jobs.operations.exporter.lake_metrics import LakeMetrics
from spark_jobs.places import CREDIT_FEED, FEED
from spark_jobs.streams.metrics import QueryMetrics
from spark_jobs.streams.reports import QueryReport
from tests.support.written_lakes import GOOD, NOON, Record, WrittenLake, at

REPORT = QueryReport(
    job="deduplicate",
    query="ingest",
    version="1",
    process_id=1,
    started_at=NOON,
    updated_at=NOON,
    batch_id=7,
    watermark_lag_s=60.0,
    watermark_delay_s=30.0,
    quarantined_rows=5,
    backlog_records=3,
    backlog_bytes=100,
)
"""A report in which nothing is unknown."""
VALIDATION = {"at": "2026-03-01T00:00:00+00:00", "passed": 90, "warnings": 1, "critical": 2, "rows": 10, "tables": {}}
"""What the history says of a validation."""


@cache
def exposed_metrics() -> Mapping[str, frozenset[str]]:
    """By name, as Prometheus knows it, the labels of each metric of the drivers and of ``adloom exporter``."""
    with tempfile.TemporaryDirectory() as folder:
        written = full_lake(folder)
        gold = GoldMetrics(written.lake)
        gold.refresh(NOON)
        return _labels(QueryMetrics(lambda: [REPORT]), LakeMetrics(written.lake), gold)


def full_lake(folder: str) -> WrittenLake:
    """A lake in ``folder`` with all that the exporter has metrics of: validation, ledger, feeds, a session."""
    written = WrittenLake(open_lake(folder))
    written.batch(BRONZE_EVENTS, "ingest", [GOOD, {**GOOD, "verdict": "missing_user_id", "source": "t/0/2"}])
    written.batch(SILVER_EVENTS, "deduplicate", [GOOD], reached=0)
    written.batch(SESSIONS, "sessionize", [session("s", GOOD)])
    list(advance(Settings(), written.lake, lambda: NOON))
    written.lake.files.write(FEED, json_bytes({"windows": [window(0)]}))
    write_record(written.lake, CREDIT_FEED, CreditFeed(run=1, until=NOON, credited=(credited(),)))
    written.lake.files.write("_reports/history.json", json_bytes({"validations": [VALIDATION]}))
    return written


def session(name: str, event: Record) -> Record:
    """The row of ``gold/sessions`` of a user with a single event."""
    told = {column: event[column] for column in ("event_time", "event_type", "event_id")}
    return {"session_id": name, "events": [told], "event_count": 1, "event_date": event["event_date"]}


def credited(
    campaign: str | None = "c", model: str = "linear", *, conversions: float = 2.5, value_micros: int = 700
) -> CreditedCampaign:
    """What a campaign is credited with, in EUR."""
    return CreditedCampaign(
        campaign=campaign, model=model, currency="EUR", conversions=conversions, value_micros=value_micros
    )


def window(
    start: float, campaign: str = "c", *, minutes: float = 10, impressions: int = 10, cost_micros: int | None = 500
) -> dict[str, Any]:
    """A row of the feed, ``start`` minutes after noon; each tenth impression was clicked."""
    return {
        "window_start": at(start).isoformat(),
        "window_end": at(start + minutes).isoformat(),
        "campaign_id": campaign,
        "impressions": impressions,
        "clicks": impressions // 10,
        "cost_micros": cost_micros,
        "ctr": 0.1,
    }


def _labels(*collectors: Collector) -> Mapping[str, frozenset[str]]:
    found = defaultdict[str, set[str]](set)
    for collector in collectors:
        for metric in collector.collect():
            for sample in metric.samples:
                found[sample.name] |= sample.labels.keys()
    return {name: frozenset(labels) for name, labels in found.items()}
