"""The overview page: what it counts, and that it is static HTML."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from expectations.overview.figures import Figures, count_figures
from expectations.overview.page import write_overview
from spark_jobs.lake.layout import Lake
from spark_jobs.queries import TABLES
from spark_jobs.runtime.lakes import open_lake
from tests.expectations.good_rows import append, good_rows, write_ledger

_STRANGE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    own = open_lake(str(tmp_path_factory.mktemp("overview") / "lake"))
    for table in TABLES:
        rows = good_rows(table.name)
        for row in rows:
            if row.get("campaign_id"):
                row["campaign_id"] = _STRANGE
        append(spark, own, table, rows)
    write_ledger(own)
    return own


@pytest.fixture(scope="module")
def figures(spark: SparkSession, lake: Lake) -> Figures:
    return count_figures(spark, lake)


def test_totals_are_those_of_the_tables(figures: Figures) -> None:
    assert figures.totals == {"impressions": 2, "clicks": 1, "cost_micros": 2400, "sessions": 5, "users": 4}


def test_an_impression_that_was_clicked_twice_counts_once_and_its_clicks_twice(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = open_lake(str(tmp_path / "lake"))
    attributions = next(table for table in TABLES if table.name == "attributions")
    clicked = good_rows(attributions.name)[0]
    append(spark, lake, attributions, [clicked, clicked | {"click_id": "c9"}])
    totals = count_figures(spark, lake).totals
    assert (totals["impressions"], totals["clicks"], totals["cost_micros"]) == (1, 2, clicked["cost_micros"])


def test_campaigns_are_counted_by_the_hour_of_the_impression(figures: Figures) -> None:
    assert figures.campaigns == [
        {"time": "2026-03-01T12:00:00Z", "campaign": _STRANGE, "impressions": 2, "clicks": 1, "ctr": 0.5}
    ]


def test_a_length_on_a_bound_falls_into_the_bin_that_starts_there(figures: Figures) -> None:
    delays = {row["length"]: row["clicks"] for row in figures.delays if row["clicks"]}
    assert delays == {"2 to 5 min": 1}, "exactly two minutes"
    lengths = {row["length"]: row["sessions"] for row in figures.lengths if row["sessions"]}
    assert lengths == {"0 to 30 s": 2, "2 to 5 min": 1, "5 to 10 min": 2}


def test_endings_verdicts_and_status(figures: Figures) -> None:
    assert figures.endings == [{"ended_by": "is_last", "sessions": 1}, {"ended_by": "timeout", "sessions": 4}]
    assert figures.verdicts == [{"verdict": "malformed_json", "records": 1}]
    assert figures.status == [{"status": "inactive", "users": 1}, {"status": "online", "users": 1}]


def test_the_page_shows_every_chart_and_runs_no_script(spark: SparkSession, lake: Lake) -> None:
    page = (lake.files.read(write_overview(spark, lake, datetime(2026, 3, 2, tzinfo=UTC))) or b"").decode()
    for name in ("funnel", "clicks", "ctr", "delays", "lengths", "endings", "status", "shares", "verdicts"):
        assert f'id="{name}"' in page
    assert page.count("<svg ") == 9
    assert "<script" not in page
    assert "&lt;script" in page
    assert "http://" not in page.replace("http://www.w3.org/", "")
    assert "https://" not in page
    assert "2 March 2026" in page


def test_a_lake_without_gold_says_so(spark: SparkSession, tmp_path: Path) -> None:
    lake = open_lake(str(tmp_path / "lake"))
    page = (lake.files.read(write_overview(spark, lake, datetime(2026, 3, 2, tzinfo=UTC))) or b"").decode()
    assert "The gold tables are empty" in page
    assert "<svg " not in page
