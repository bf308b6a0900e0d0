"""The overview page: what it counts, and that it is static HTML."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from expectations.overview.credit import count_credit
from expectations.overview.figures import Figures, count_figures
from expectations.overview.page import write_overview
from spark_jobs.config.choices import CreditModel
from spark_jobs.config.sections import CreditSettings, S3Settings
from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import ATTRIBUTIONS, CREDITS, LEFT_OUT, PATHS
from spark_jobs.credit.models import credits_of
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.notes import CommitNote
from spark_jobs.lake.open import open_lake
from spark_jobs.queries.registry import TABLES
from spark_jobs.spark.open_lake import OpenLake
from spark_jobs.spark.write_delta import append_rows
from tests.expectations.good_rows import append, at, good_rows, write_ledger

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
    return count_figures(OpenLake.of(lake, Settings(), spark))


def _page(spark: SparkSession, lake: Lake) -> str:
    key = write_overview(OpenLake.of(lake, Settings(), spark), datetime(2026, 3, 2, tzinfo=UTC))
    return (lake.files.read(key) or b"").decode()


def test_totals_are_those_of_the_tables(figures: Figures) -> None:
    assert figures.totals == {"impressions": 2, "clicks": 1, "cost_micros": 2400, "sessions": 5, "users": 4}


def test_an_impression_that_was_clicked_twice_counts_once_and_its_clicks_twice(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = open_lake(str(tmp_path / "lake"))
    attributions = next(table for table in TABLES if table.name == "attributions")
    clicked = good_rows(attributions.name)[0]
    append(spark, lake, attributions, [clicked, clicked | {"click_id": "c9"}])
    totals = count_figures(OpenLake.of(lake, Settings(), spark)).totals
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
    page = (
        lake.files.read(write_overview(OpenLake.of(lake, Settings(), spark), datetime(2026, 3, 2, tzinfo=UTC))) or b""
    ).decode()
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
    page = (
        lake.files.read(write_overview(OpenLake.of(lake, Settings(), spark), datetime(2026, 3, 2, tzinfo=UTC))) or b""
    ).decode()
    assert "The gold tables are empty" in page
    assert "<svg " not in page


@pytest.fixture(scope="module")
def credited(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A lake with three conversions: after a click, after nothing, and a refund of the first."""
    own = open_lake(str(tmp_path_factory.mktemp("credited") / "lake"))
    append(spark, own, ATTRIBUTIONS, good_rows(ATTRIBUTIONS.name))
    click = {"position": 1, "kind": "click", "impression_id": "i1", "click_id": "c1", "campaign_id": _STRANGE}
    click |= {"ad_id": "a1", "touch_time": at(2)}
    one = {"user_id": "u1", "conversion_type": "purchase", "currency": "EUR", "order_id": None, "revokes": None}
    when = {"conversion_time": at(20), "event_date": at(20).date()}
    none: dict[str, object] = {"outcome": "organic", "path_length": 0, "touches": []}
    first = {"conversion_id": "p1", "value_micros": 5_000_000, "outcome": "click_through", "path_length": 1}
    first |= {"touches": [click]}
    second = {"conversion_id": "p2", "value_micros": 0, "currency": None, **none}
    third = {"conversion_id": "p3", "value_micros": -2_000_000, "revokes": "p1", **none}
    paths = [one | when | row for row in (first, second, third)]
    append(spark, own, PATHS, paths)
    rows = spark.createDataFrame([tuple(row[name] for name in PATHS.column_names) for row in paths], PATHS.ddl)
    append_rows(credits_of(rows, CreditSettings()), own, CREDITS, CommitNote(writer="test", batch=1))
    append(spark, own, LEFT_OUT, good_rows("left_out"))
    return own


def test_conversions_are_counted_as_the_views_have_them(credited: Lake) -> None:
    figures = count_credit(credited, S3Settings())
    assert figures
    assert (figures.conversions, figures.currency, figures.value_micros) == (2, "EUR", 3_000_000)
    assert figures.models == [
        {"campaign": name, "model": model.value, "value": value}
        for name, value in ((_STRANGE, 5.0), ("no touch", -2.0))
        for model in CreditModel
    ]
    assert [(row["touches"], row["conversions"]) for row in figures.lengths] == [("none: organic", 1), ("1 touch", 1)]
    assert [(row["length"], row["conversions"]) for row in figures.delays][-1] == ("up to 1 h", 1)
    assert figures.model == "last_click"
    returned = {one.campaign: (one.conversions, one.value_micros) for one in figures.returns}
    sold = returned.pop(_STRANGE)
    assert sold == (1.0, 5_000_000)
    assert returned, "campaigns that spent and sold nothing are shown too"
    assert set(returned.values()) == {(0.0, 0)}
    assert [
        (one.reason, one.campaign, one.currency, one.conversions, one.value_micros) for one in figures.left_out
    ] == [
        ("repeat of an order", "spring", "EUR", 1, 25_000_000),
        ("refund of more than is left", "spring", "EUR", 1, -1_000_000),
    ]


def test_the_page_shows_what_conversions_bring(spark: SparkSession, credited: Lake) -> None:
    page = _page(spark, credited)
    for name in ("models", "paths", "converting", "returns", "left_out"):
        assert f'id="{name}"' in page
    assert "value, EUR" in page
    assert "<script" not in page
