"""A real Prometheus answers every panel of the dashboards."""

import json
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from infra.docs.generate import DASHBOARDS
from infra.grafana.model import Panel
from spark_jobs.operations.exporter.gold_metrics import GoldMetrics
from spark_jobs.operations.exporter.lake_metrics import LakeMetrics
from spark_jobs.streams.metrics import QueryMetrics, serve_metrics
from spark_jobs.streams.reports import QueryReport
from tests.stack.watching import prometheus_on
from tests.support.exposed import REPORT, full_lake
from tests.support.servers import free_port, wait_until
from tests.support.written_lakes import NOON

pytestmark = pytest.mark.stack

_SOON_S = 60
_CHOSEN = {"$query": ".*", "$__rate_interval": "1m"}
"""What Grafana puts in the place of its variables when all queries are chosen."""


class _Moving:
    """The reports of a query that reads rows, some of them late, at each scrape."""

    def __init__(self) -> None:
        self._scrapes = 0

    def __call__(self) -> list[QueryReport]:
        self._scrapes += 1
        rows = {"total_input_rows": 100 * self._scrapes, "late_rows": self._scrapes}
        return [REPORT.model_copy(update=rows)]


@pytest.fixture
def prometheus(tmp_path: Path) -> Iterator[int]:
    """The port of a Prometheus that scrapes a driver and an exporter, both with all of their metrics."""
    lake = full_lake(str(tmp_path / "lake")).lake
    gold = GoldMetrics(lake)
    gold.refresh(NOON)
    served, port = f"127.0.0.1:{free_port()}", free_port()
    collectors = (QueryMetrics(_Moving()), LakeMetrics(lake), gold)
    with serve_metrics(served, *collectors), prometheus_on(port, tmp_path, scraped=[served]):
        yield port


def test_prometheus_answers_every_panel_with_a_number(prometheus: int) -> None:
    panels = [panel for board in DASHBOARDS.values() for section in board.sections for panel in section.panels]
    assert len(panels) > 40
    # The first validation fails, and rates need two scrapes.
    wait_until(lambda: bool(_asked(prometheus, 'ALERTS{alertstate="firing"}')), _SOON_S, "no alert fires")
    wait_until(lambda: bool(_asked(prometheus, "rate(adloom_input_rows_total[1m]) > 0")), _SOON_S, "no rate")
    unanswered = [panel.title for panel in panels if not _numbers(prometheus, panel)]
    assert unanswered == []


def _numbers(port: int, panel: Panel) -> list[float]:
    query = panel.query
    for name, value in _CHOSEN.items():
        query = query.replace(name, value)
    assert "$" not in query, panel.title
    return [number for series in _asked(port, query) if (number := float(series["value"][1])) == number]


def _asked(port: int, query: str) -> list[dict[str, Any]]:
    """The series of an answer; urllib raises if Prometheus refuses ``query``."""
    address = f"http://127.0.0.1:{port}/api/v1/query?query={urllib.parse.quote(query)}"
    with urllib.request.urlopen(address, timeout=10) as answer:
        found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
    return found
