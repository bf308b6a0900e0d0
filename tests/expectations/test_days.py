"""When a day is done, on the page: figures that DuckDB confirms, and the grid that shows them."""

import html
import re
from dataclasses import astuple, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession

from expectations.days.figures import MOST_RESTATED, DaysFigures, days_figures
from expectations.days.page import days_part
from expectations.landing import write_landing_page
from expectations.results import ValidationResult
from spark_jobs.contract.tables import DAYS
from spark_jobs.days.day import Day, DayStatus, read_days
from spark_jobs.lake.layout import Lake, commit_key
from spark_jobs.lake.notes import CommitNote
from spark_jobs.lake.open import open_lake
from spark_jobs.places import REPORTS
from spark_jobs.spark.write_delta import append_rows, replace_all
from tests.support.lakes import live_files

_LAST = date(2026, 4, 9)
_NOON = datetime(2026, 4, 10, 12, 34, 56, 789_123, tzinfo=UTC)
_TABLES = ("attributions", "campaign_stats", "sessions")


def many_days() -> list[Day]:
    """Three tables over 45 days, of every status; sessions are one day behind."""
    found = []
    for place, table in enumerate(_TABLES):
        for ago in range(45):
            day = Day(table, _LAST - timedelta(days=ago), updated_at=_NOON)
            if ago > (1 if table == "sessions" else 0):
                day = replace(day, status=DayStatus.COMPLETE, complete_at=_NOON - timedelta(days=ago))
            if day.complete_at and ago % 7 == place + 2:
                number = ago // 7 + 1
                day = replace(
                    day,
                    status=DayStatus.RESTATED,
                    restated=number,
                    restated_at=_NOON - timedelta(hours=ago),
                    changes=1200 * number,
                    clicks=-number,
                    cost_micros=(-1) ** number * 1_234_567 * number,
                )
            if day.complete_at and ago % 5 == 4:
                day = replace(day, status=DayStatus.AUDITED, audited_at=_NOON)
            if ago > 25:
                day = replace(day, status=DayStatus.FROZEN, frozen_at=_NOON)
            found.append(day)
    return found


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    own = open_lake(str(tmp_path_factory.mktemp("days") / "lake"))
    for days in ([Day("sessions", _LAST, DayStatus.FROZEN)], many_days()):
        rows = spark.createDataFrame([astuple(day) for day in days], DAYS.ddl).coalesce(1)
        replace_all(rows, own, DAYS, CommitNote(writer="test", batch=1))
    return own


@pytest.fixture(scope="module")
def figures(lake: Lake) -> DaysFigures:
    found = days_figures(read_days(lake))
    assert found
    return found


def _counted(lake: Lake, sql: str) -> list[tuple[Any, ...]]:
    folder = lake.path / DAYS.path
    files = [str(folder / name) for name in live_files(folder)]
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE days AS FROM read_parquet($files)", {"files": files})
        return connection.execute(sql).fetchall()


def test_the_table_is_read_as_it_was_written(lake: Lake) -> None:
    assert read_days(lake) == sorted(many_days(), key=lambda day: day.key)
    assert [day.event_date for day in read_days(lake, since=_LAST, until=_LAST)] == [_LAST] * 3


def test_the_table_is_read_whoever_wrote_it(spark: SparkSession, tmp_path: Path) -> None:
    """By appends, deletes and a checkpoint, which adloom itself does not write there."""
    own, days = open_lake(str(tmp_path / "lake")), sorted(many_days(), key=lambda day: day.key)
    place = f"delta.`{own.table(DAYS)}`"
    for part in (days[:50], days[50:]):
        rows = spark.createDataFrame([astuple(day) for day in part], DAYS.ddl).coalesce(2)
        append_rows(rows, own, DAYS, CommitNote(writer="test", batch=len(part)))
    assert read_days(own) == days
    spark.sql(f"ALTER TABLE {place} SET TBLPROPERTIES ('delta.checkpointInterval' = '1')")
    spark.sql(f"DELETE FROM {place} WHERE table_name = 'sessions'")
    assert own.files.read(f"{DAYS.path}/_delta_log/_last_checkpoint") is not None
    own.files.delete([commit_key(DAYS, 0)])
    left = [day for day in days if day.table_name != "sessions"]
    assert read_days(own) == left
    spark.sql(f"ALTER TABLE {place} SET TBLPROPERTIES ('delta.checkpointInterval' = '100')")
    spark.sql(f"UPDATE {place} SET restated = 7 WHERE restated = 0")
    assert read_days(own) == [replace(day, restated=day.restated or 7) for day in left]


def test_the_grid_has_the_last_thirty_days(lake: Lake, figures: DaysFigures) -> None:
    due = _counted(
        lake,
        "SELECT table_name, event_date, status, restated FROM days "
        "WHERE event_date > (SELECT max(event_date) FROM days) - 30 ORDER BY ALL",
    )
    cells = [
        (name, when, day.status.value, day.restated)
        for name, row in figures.tables.items()
        for when, day in zip(figures.dates, row, strict=True)
        if day
    ]
    assert sorted(cells) == due
    assert len(figures.dates) == 30


def test_what_is_counted_is_what_duckdb_counts(lake: Lake, figures: DaysFigures) -> None:
    (done,) = _counted(lake, "SELECT min(event_date) - 1 FROM days WHERE status = 'open'")
    assert figures.done_until == done[0]
    statuses = dict(
        _counted(
            lake,
            "SELECT status, count(*) FROM days WHERE event_date > (SELECT max(event_date) FROM days) - 30 GROUP BY 1",
        )
    )
    assert {status.value: count for status, count in figures.statuses.items()} == statuses
    restated = _counted(
        lake,
        "SELECT event_date, max(restated), sum(changes), count(*), "
        "coalesce(sum(cost_micros) FILTER (table_name = 'campaign_stats'), 0) FROM days WHERE restated > 0 "
        "GROUP BY 1 ORDER BY max(restated_at) DESC, event_date DESC",
    )
    assert figures.restated_count == len(restated) > MOST_RESTATED
    listed = [
        (one.event_date, one.restated, one.changes, len(one.tables), one.counted.cost_micros if one.counted else 0)
        for one in figures.restated
    ]
    assert listed == restated[:MOST_RESTATED]
    assert any(one.counted for one in figures.restated)


def _page(lake: Lake, figures: DaysFigures | None) -> str:
    write_landing_page(lake, ValidationResult(f"{REPORTS}/index.html"), _NOON, days=figures)
    return (lake.files.read(f"{REPORTS}/index.html") or b"").decode()


def test_the_page_shows_every_cell_with_its_text(lake: Lake, figures: DaysFigures) -> None:
    page = _page(lake, figures)
    assert "Every table is done up to <strong>7 April 2026</strong>; the newest day is 9 April 2026." in page.replace(
        f". <strong>{figures.restated_count}</strong> days have changed since they were complete", ""
    )
    cells = re.findall(r'<td><span class="day is-(\w+)" title="([^"]*)">(\d*)</span></td>', page)
    shown = [day for row in figures.tables.values() for day in row if day]
    part = days_part(figures)
    assert part
    due = [(day.status.value, part.hover(day), str(day.restated) if day.restated else "") for day in shown]
    assert [(status, html.unescape(title), text) for status, title, text in cells] == due


def test_the_text_of_a_cell_says_what_happened(figures: DaysFigures) -> None:
    part = days_part(figures)
    assert part
    day = replace(many_days()[2], audited_at=_NOON + timedelta(hours=2))
    assert part.hover(day).splitlines() == [
        "attributions, 7 April 2026: restated 1",
        "complete since 8 Apr 2026, 12:34 UTC",
        "restated once: 1,200 rows, last at 10 Apr 2026, 10:34 UTC",
        "impressions 0, clicks \N{MINUS SIGN}1, cost \N{MINUS SIGN}1.234567",
        "a replay agreed at 10 Apr 2026, 14:34 UTC",
    ]
    assert part.hover(Day("sessions", _LAST)) == "sessions, 9 April 2026: open"


def test_a_lake_without_days_has_no_such_part(tmp_path: Path) -> None:
    empty = open_lake(str(tmp_path / "lake"))
    assert days_figures(read_days(empty)) is None
    assert 'id="days"' not in _page(empty, None)
