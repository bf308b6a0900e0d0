"""Rows corrected by repairs: counts that DuckDB confirms, and the page that shows them."""

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession

from expectations.landing import write_landing_page
from expectations.restated.count import count_restated
from expectations.restated.figures import RestatedFigures
from expectations.restated.page import RestatedPart, restated_part
from expectations.results import ValidationResult
from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import RESTATEMENTS
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.notes import CommitNote
from spark_jobs.lake.open import open_lake
from spark_jobs.places import REPORTS
from spark_jobs.spark.open_lake import OpenLake
from spark_jobs.spark.write_delta import append_rows
from tests.expectations.good_rows import Row
from tests.support.lakes import live_files

_START = datetime(2026, 3, 1, 22, 58, 59, 999_999, tzinfo=UTC)
_STRANGE = '"><script>alert(1)</script>\x00\u202e'


def _row(number: int, **more: Any) -> Row:
    return {
        "repair": 1,
        "table_name": "campaign_stats",
        "change": "update",
        "outcome": "applied",
        "row_key": f'{{"n": {number}}}',
        "before": "{}",
        "after": "{}",
        "row_time": _START,
        "campaign_id": "c1",
        "impressions": 1,
        "clicks": 0,
        "cost_micros": 2_000_001,
        "cause": "late_impression",
        "event_type": "impression",
        "event_id": f"e{number}",
        "received_at": _START,
        "decided_at": _START,
        **more,
    }


def _many() -> list[Row]:
    """Restatements of four repairs over nine days."""
    chance = random.Random(21)
    decided = [_START + timedelta(hours=chance.uniform(0, 9 * 24)) for _ in range(4)]
    rows = []
    for number in range(1200):
        table = chance.choice(("attributions", "campaign_stats", "campaign_stats", "sessions"))
        counts = {
            "impressions": chance.randint(-3, 9) if table == "campaign_stats" else None,
            "clicks": chance.randint(-2, 2) if table != "sessions" else None,
            "cost_micros": chance.randint(-(10**15), 10**15) if table == "campaign_stats" else None,
        }
        repair = chance.randrange(4)
        rows.append(
            _row(
                number,
                repair=repair + 1,
                decided_at=decided[repair],
                table_name=table,
                change=chance.choice(("insert", "update", "delete")),
                outcome=chance.choice(("applied", "applied", "applied", "frozen")),
                campaign_id=None if table == "sessions" else f"c{chance.randrange(13)}",
                cause=chance.choice(("late_impression", "late_click", "late_activity", "requeue")),
                **counts,
            )
        )
    return rows


def _write(spark: SparkSession, lake: Lake, rows: list[Row]) -> None:
    values = [tuple(row[name] for name in RESTATEMENTS.column_names) for row in rows]
    append_rows(spark.createDataFrame(values, RESTATEMENTS.ddl), lake, RESTATEMENTS, CommitNote(writer="test", batch=1))


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    own = open_lake(str(tmp_path_factory.mktemp("restated") / "lake"))
    _write(spark, own, _many())
    return own


@pytest.fixture(scope="module")
def figures(spark: SparkSession, lake: Lake) -> RestatedFigures:
    found = count_restated(OpenLake.of(lake, Settings(), spark))
    assert found
    return found


def _counted(lake: Lake, sql: str) -> list[tuple[Any, ...]]:
    """What DuckDB answers; the table ``told`` has the rows."""
    folder = lake.path / RESTATEMENTS.path
    files = [str(folder / name) for name in live_files(folder)]
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE told AS FROM read_parquet($files)", {"files": files})
        return connection.execute(sql).fetchall()


def test_changes_are_counted_by_table(lake: Lake, figures: RestatedFigures) -> None:
    applied = "count(*) FILTER (change = '{0}' AND outcome = 'applied')"
    kinds = ", ".join(applied.format(kind) for kind in ("insert", "update", "delete"))
    due = _counted(
        lake,
        f"SELECT table_name, {kinds}, count(*) FILTER (outcome = 'frozen') FROM told GROUP BY 1 ORDER BY 1",
    )
    found = [(one.table, one.inserts, one.updates, one.deletes, one.frozen) for one in figures.tables]
    assert found == due
    assert (figures.runs, figures.changes + figures.frozen) == (4, 1200)


def test_money_is_that_of_the_windows_of_campaigns_and_only_where_it_was_applied(
    lake: Lake, figures: RestatedFigures
) -> None:
    due = _counted(
        lake,
        "SELECT campaign_id, sum(impressions), sum(clicks), sum(cost_micros) FROM told "
        "WHERE table_name = 'campaign_stats' AND outcome = 'applied' GROUP BY 1 ORDER BY abs(sum(cost_micros)) DESC",
    )
    found = [(one.campaign, one.impressions, one.clicks, one.cost_micros) for one in figures.campaigns]
    assert (found, figures.campaign_count) == (due[:10], 13)
    total = (figures.total.impressions, figures.total.clicks, figures.total.cost_micros)
    assert total == tuple(sum(row[column] for row in due) for column in (1, 2, 3))


def test_every_change_is_in_one_bar(lake: Lake, figures: RestatedFigures) -> None:
    due = _counted(
        lake, "SELECT table_name, cause, count(*) FROM told WHERE outcome = 'applied' GROUP BY ALL ORDER BY ALL"
    )
    bars = figures.timelines.bars
    found = {(bar.row, bar.kind): 0 for bar in bars}
    for bar in bars:
        found[bar.row, bar.kind] += bar.count
    assert sorted((*key, count) for key, count in found.items()) == due
    assert len({bar.start for bar in bars}) == 4, "each repair was at another time"
    assert figures.last == max(row["decided_at"] for row in _many())


def _page(lake: Lake, figures: RestatedFigures | None) -> str:
    write_landing_page(lake, ValidationResult(f"{REPORTS}/index.html"), _START, None, figures)
    return (lake.files.read(f"{REPORTS}/index.html") or b"").decode()


def test_the_page_shows_them(lake: Lake, figures: RestatedFigures) -> None:
    page = _page(lake, figures)
    assert f"<strong>{figures.changes}</strong> rows of gold changed by 4 runs of repair" in page
    assert f"<strong>{figures.frozen}</strong> were too old and stayed as they were" in page
    assert "All 13 campaigns" in page
    assert RestatedPart.money(figures.total.cost_micros) in page
    for cause in ("late_impression", "late_click", "late_activity", "requeue"):
        assert f"</i>{cause}</span>" in page
    part = restated_part(figures)
    assert part
    assert part.chart in page
    assert part.chart.count('aria-roledescription="bar"') == len(figures.timelines.bars)


def test_a_lake_without_restatements_has_no_such_part(spark: SparkSession, tmp_path: Path) -> None:
    lake = open_lake(str(tmp_path / "lake"))
    assert count_restated(OpenLake.of(lake, Settings(), spark)) is None
    _write(spark, lake, [])
    assert count_restated(OpenLake.of(lake, Settings(), spark)) is None
    assert "Rows corrected" not in _page(lake, None)


def test_what_a_campaign_is_called_is_text_on_the_page(spark: SparkSession, tmp_path: Path) -> None:
    lake = open_lake(str(tmp_path / "lake"))
    _write(spark, lake, [_row(1, campaign_id=_STRANGE)])
    page = _page(lake, count_restated(OpenLake.of(lake, Settings(), spark)))
    assert "<strong>1</strong> row of gold changed by 1 run of repair, replay, marks or credit, the last on" in page
    assert "<script" not in page
    assert "\x00" not in page
    assert "\u202e" not in page
    assert "alert(1)&lt;/script&gt;" in page
    assert "+2.000001" in page


@pytest.mark.parametrize(
    ("micros", "shown"),
    [
        (0, "0"),
        (1, "+0.000001"),
        (-1_500_000, "\N{MINUS SIGN}1.50"),
        (12_345_678_900_000, "+12,345,678.90"),
        (9_007_199_254_740_993, "+9,007,199,254.740993"),
    ],
)
def test_money_is_exact(micros: int, shown: str) -> None:
    assert RestatedPart.money(micros) == shown
