"""The commands that give people rows: sql, show and export, without Java."""

import csv
import io
import json
import os
import shlex
import subprocess
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from spark_jobs.contract.tables import ATTRIBUTIONS, CAMPAIGN_STATS, SESSIONS
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from spark_jobs.queries.registry import SHOWN_TABLES
from spark_jobs.sql.names import NAMES
from spark_jobs.sql.views import VIEWS
from tests.expectations.good_rows import append, good_rows
from tests.support.drivers import ADLOOM
from tests.support.queried import comparable, rows_of

pytestmark = pytest.mark.derived


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Rows of two days; its path has a space."""
    found = open_lake(str(tmp_path_factory.mktemp("commands") / "a lake"))
    for table in (ATTRIBUTIONS, SESSIONS, CAMPAIGN_STATS):
        append(spark, found, table, good_rows(table.name))
    next_day = good_rows("attributions")[0]["event_date"] + timedelta(days=1)
    append(spark, found, ATTRIBUTIONS, [{**row, "event_date": next_day} for row in good_rows("attributions")])
    return found


def _adloom(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Without Java: these commands must not need it."""
    return subprocess.run(
        [*ADLOOM, *arguments],
        env={**os.environ, "JAVA_HOME": "/no/java", "TZ": "Asia/Tokyo", **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        input="SELECT 1 AS one; SELECT status, count(*) AS n FROM attributions GROUP BY ALL ORDER BY 1",
    )


def test_the_command_prints_each_format_to_a_file_or_not(lake: Lake, tmp_path: Path) -> None:
    place, expected = str(lake.path), rows_of(lake, "SELECT session_id, session_start, events FROM sessions ORDER BY 1")
    query = ("sql", "SELECT session_id, session_start, events FROM sessions ORDER BY 1", "--lake", place)
    for target in ((), ("--output", str(tmp_path / "rows.csv"))):
        done = _adloom(*query, *target, "--format", "csv")
        assert done.returncode == 0, done.stderr
        text = (tmp_path / "rows.csv").read_text() if target else done.stdout
        rows = list(csv.DictReader(io.StringIO(text)))
        assert [row["session_id"] for row in rows] == [row["session_id"] for row in expected]
        assert rows[0]["session_start"] == f"{expected[0]['session_start']:%Y-%m-%dT%H:%M:%S.%fZ}"
        assert len(json.loads(rows[0]["events"])) == len(expected[0]["events"])
    formula = _adloom("sql", "SELECT '=1+1' AS campaign_id", "--lake", place, "--format", "csv")
    assert formula.stdout.splitlines() == ["campaign_id", "=1+1"], "programs read it, so a text is written as it is"
    printed = json.loads(_adloom(*query, "--format", "json").stdout)
    assert [row["session_id"] for row in printed] == [row["session_id"] for row in expected]
    assert _adloom(*query, "--output", str(tmp_path / "rows.parquet")).returncode == 0
    assert comparable(pq.read_table(tmp_path / "rows.parquet").to_pylist()) == comparable(expected)
    refused = _adloom(*query, "--output", str(tmp_path / "rows.xls"))
    assert refused.returncode == 1
    assert "its suffix names no format; give one of csv, json, parquet" in refused.stderr


def test_two_columns_of_one_name_are_both_shown_and_a_reader_that_leaves_is_no_error(lake: Lake) -> None:
    statement = "SELECT 1 AS n, 2 AS n FROM attributions LIMIT 1"
    done = _adloom("sql", statement, "--lake", str(lake.path))
    assert done.returncode == 0, done.stderr
    assert ["1", "2"] in [line.split() for line in done.stdout.splitlines()]
    many = shlex.join([*ADLOOM, "sql", "FROM range(300000)", "--format", "csv", "--lake", str(lake.path)])
    left = subprocess.run(
        ["bash", "-c", f"{many} | head -1"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert left.stdout == "range\n"
    assert "Error" not in left.stderr
    assert "error" not in left.stderr


def test_statements_come_from_standard_input_and_the_last_one_is_shown(lake: Lake) -> None:
    done = _adloom("sql", "--lake", str(lake.path))
    assert done.returncode == 0, done.stderr
    assert [line.split() for line in done.stdout.splitlines()[1:2]] == [["status", "n"]]
    assert "3 rows" in done.stdout


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("2026-03-01T12:00", "has no zone; write it like 2026-03-01T12:00Z"),
        ("yesterday", "--as-of 'yesterday' is not a time"),
        ("funnel=3", "no table 'funnel' has versions; there are"),
    ],
)
def test_a_state_that_is_none_is_refused(lake: Lake, value: str, message: str) -> None:
    done = _adloom("sql", "FROM funnel", "--lake", str(lake.path), "--as-of", value)
    assert done.returncode == 1
    assert message in done.stderr


def test_times_are_shown_in_utc_and_brackets_stay(spark: SparkSession, tmp_path: Path) -> None:
    lake = open_lake(str(tmp_path / "lake"))
    session = {**good_rows("sessions")[0], "user_id": "[/x] :cat: u1"}
    append(spark, lake, SESSIONS, [session])
    for columns in ("600", "80"):  # as a table, and row by row
        shown = _adloom("show", "sessions", "--lake", str(lake.path), COLUMNS=columns)
        assert shown.returncode == 0, shown.stderr
        assert f"{session['session_start']:%Y-%m-%dT%H:%M:%S}.000000Z" in shown.stdout
        assert f'"event_time": "{session["events"][0]["event_time"]:%Y-%m-%dT%H:%M:%S}' in shown.stdout
        assert "[/x] :cat: u1" in shown.stdout


def test_an_export_is_whole_says_what_it_is_and_replaces_nothing(lake: Lake, tmp_path: Path) -> None:
    out, place = tmp_path / "out", str(lake.path)
    done = _adloom("export", "attributions", "campaign_stats", "daily_campaigns", "--lake", place, "--out", str(out))
    assert done.returncode == 0, done.stderr
    for name in ("attributions", "campaign_stats", "daily_campaigns"):
        expected = rows_of(lake, f"FROM {name}")
        assert comparable(_read_back(out / name)) == comparable([dict(sorted(row.items())) for row in expected])
        manifest = json.loads((out / name / "export.json").read_text())
        table = ATTRIBUTIONS if name != "campaign_stats" else CAMPAIGN_STATS
        assert manifest["versions"] == {table.name: lake.newest_commit(table.path)}
        assert manifest["rows"] == len(expected)
    again = _adloom("export", "attributions", "--lake", place, "--out", str(out))
    assert again.returncode == 1
    assert "exists already: move it away, or give another --out" in again.stderr
    assert sorted(one.name for one in out.iterdir()) == ["attributions", "campaign_stats", "daily_campaigns"]


def _read_back(folder: Path) -> list[dict[str, Any]]:
    rows = []
    for file in folder.rglob("*.parquet"):
        day = file.parent.name.partition("=")[2]
        kept = {"event_date": date.fromisoformat(day)} if day else {}
        rows += [dict(sorted({**row, **kept}.items())) for row in pq.ParquetFile(file).read().to_pylist()]
    return rows


def test_an_export_of_some_dates_has_these(lake: Lake, tmp_path: Path) -> None:
    days = sorted({row["event_date"] for row in rows_of(lake, "FROM attributions")})
    for first, last in ((days[0], days[0]), (days[-1] + timedelta(days=1), None)):
        out = tmp_path / f"since {first}"
        limits = ["--from", str(first), *(["--to", str(last)] if last else [])]
        done = _adloom("export", "attributions", "--lake", str(lake.path), "--out", str(out), *limits)
        assert done.returncode == 0, done.stderr
        found = {row["event_date"] for row in _read_back(out / "attributions")}
        assert found == {day for day in days if first <= day <= (last or day)}
    done = _adloom(
        "export", "campaign_stats", "--lake", str(lake.path), "--out", str(tmp_path / "x"), "--to", "2025-01-06"
    )
    assert "campaign_stats has no event_date, so --from and --to do not apply" in done.stderr
    assert not list((tmp_path / "x").iterdir())


def test_every_table_and_view_can_be_named(lake: Lake) -> None:
    assert set(NAMES) == {*SHOWN_TABLES, *VIEWS}
    done = _adloom("show", "nothing", "--lake", str(lake.path))
    assert f"no table 'nothing'; there are {', '.join(NAMES)}" in " ".join(done.stderr.split())
