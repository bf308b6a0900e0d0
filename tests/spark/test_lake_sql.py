"""SQL without Spark over a lake: the rows that Spark reads, at each version, and views that Python agrees with."""

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import (
    ATTRIBUTIONS,
    BRONZE_EVENTS,
    CAMPAIGN_STATS,
    CREDIT_TABLES,
    LATE_EVENTS,
    MARKS,
    SESSIONS,
    SILVER_EVENTS,
    Table,
)
from spark_jobs.errors import LakeError, SettingsError, SqlError
from spark_jobs.ingest.quarantine import in_quarantine
from spark_jobs.lake.as_of import AsOf
from spark_jobs.lake.layout import Lake, failing_rows_key
from spark_jobs.lake.open import open_lake
from spark_jobs.queries.registry import TABLES
from spark_jobs.spark.write_delta import create_table
from spark_jobs.sql.lake_sql import LakeSql
from spark_jobs.sql.names import NAMES
from spark_jobs.sql.views import VIEWS
from tests.expectations.good_rows import append, good_rows
from tests.golden.runs import STANDARD
from tests.support.lakes import rows_by_name
from tests.support.quarantines import Record, put
from tests.support.queried import NOW, comparable, open_sql, queried_lake, rows_of
from tests.support.runs import run_in
from tests.support.source_files import write_files
from tests.support.timeline import Case

pytestmark = pytest.mark.derived

_NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return queried_lake(spark, tmp_path_factory.mktemp("sql"))


def _in_spark(spark: SparkSession, lake: Lake, table: Table, version: int) -> list[dict[str, Any]]:
    rows = spark.read.format("delta").option("versionAsOf", version).load(lake.table(table))
    found: list[dict[str, Any]] = rows.toArrow().to_pylist()
    return found


@pytest.mark.parametrize("table", TABLES, ids=lambda table: str(table.name))
def test_rows_equal_those_of_spark_at_each_version(spark: SparkSession, lake: Lake, table: Table) -> None:
    newest = lake.newest_commit(table.path)
    assert newest
    sizes = set()
    for version in range(newest + 1):
        expected = _in_spark(spark, lake, table, version)
        found = rows_of(lake, f"FROM {table.name}", AsOf(versions={table.name: version}))
        assert comparable(found) == comparable(expected), version
        sizes.add(len(expected))
    assert comparable(rows_of(lake, f"FROM {table.name}")) == comparable(expected)
    assert len(sizes) > 1, "nothing changed between versions"


def test_old_versions_are_read_past_checkpoints_and_as_far_as_the_log_goes(spark: SparkSession, tmp_path: Path) -> None:
    lake = open_lake(str(tmp_path / "lake"))
    rows = good_rows("attributions")
    append(spark, lake, ATTRIBUTIONS, rows[:1])
    spark.sql(f"ALTER TABLE delta.`{lake.table(ATTRIBUTIONS)}` SET TBLPROPERTIES ('delta.checkpointInterval' = '4')")
    for _ in range(8):
        append(spark, lake, ATTRIBUTIONS, rows[:1])
    log = lake.path / ATTRIBUTIONS.path / "_delta_log"
    assert sorted(int(file.name[:20]) for file in log.glob("*.checkpoint.parquet")) == [4, 8]
    (log / f"{2:020}.json").unlink()  # Delta removes old commits, up to one that a checkpoint holds
    counts = {}
    for version in (9, 8, 7, 5, 4):
        ((count,),) = _values(lake, "SELECT count(*) FROM attributions", AsOf(versions={"attributions": version}))
        counts[version] = count
    assert counts == {version: version for version in (9, 8, 7, 5, 4)}
    with pytest.raises(LakeError, match="version 2 is missing between 0 and 3"):
        rows_of(lake, "FROM attributions", AsOf(versions={"attributions": 3}))


def _values(lake: Lake, statement: str, as_of: AsOf = NOW) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in rows_of(lake, statement, as_of)]


def test_a_time_means_the_last_version_up_to_it(lake: Lake) -> None:
    log = lake.path / SESSIONS.path / "_delta_log"
    times = [_committed_at(file) for file in sorted(log.glob("*.json"))]
    for version, time in enumerate(times):
        until = times[version + 1] if version + 1 < len(times) else time + timedelta(days=1)
        for moment in (time, until - timedelta(milliseconds=1)):
            with open_sql(lake, AsOf(moment)) as sql:
                sql.run("FROM sessions")
                assert sql.versions == {"sessions": version}
    with pytest.raises(LakeError, match=r"sessions had no version at .*; the first is version 0 of"):
        rows_of(lake, "FROM sessions", AsOf(times[0] - timedelta(milliseconds=1)))


def _committed_at(file: Path) -> datetime:
    (info,) = [json.loads(line)["commitInfo"] for line in file.read_text().splitlines() if "commitInfo" in line]
    return datetime.fromtimestamp(info["timestamp"] / 1000, UTC)


Row = dict[str, Any]


def _attributed(lake: Lake) -> tuple[list[Row], dict[str, Row], Counter[str]]:
    """The rows of attributions, those of impressions by id, and the number of their clicks by id."""
    rows = rows_by_name(lake, ATTRIBUTIONS)
    shown = {row["impression_id"]: row for row in rows if row["status"] != "orphan_click"}
    return rows, shown, Counter(row["impression_id"] for row in rows if row["status"] == "clicked")


def test_campaigns_of_a_day_equal_what_plain_python_counts(lake: Lake) -> None:
    _, shown, clicks = _attributed(lake)
    assert max(clicks.values()) > 1, "no impression has two clicks, so counting rows would do"
    expected = []
    for day, campaign in sorted({(row["event_date"], row["campaign_id"]) for row in shown.values()}):
        own = [row for row in shown.values() if (row["event_date"], row["campaign_id"]) == (day, campaign)]
        clicked = [clicks[row["impression_id"]] for row in own if row["impression_id"] in clicks]
        cost, users = sum(row["cost_micros"] for row in own), {row["user_id"] for row in own}
        ratio = sum(clicked) / len(own)
        net = (len(own), sum(clicked), cost)  # nothing is marked
        expected.append((day, campaign, len(own), len(clicked), sum(clicked), ratio, cost, 0, len(users), *net))
    assert _values(lake, "FROM daily_campaigns") == expected


def test_the_funnel_equals_what_plain_python_counts(lake: Lake) -> None:
    rows, shown, clicks = _attributed(lake)
    sessions = rows_by_name(lake, SESSIONS)
    funnel = []
    for day in sorted({row["event_date"] for row in rows} | {row["event_date"] for row in sessions}):
        own = [row for row in shown.values() if row["event_date"] == day]
        clicked = [row for row in own if row["impression_id"] in clicks]
        orphans = [row for row in rows if row["status"] == "orphan_click" and row["event_date"] == day]
        visits = [row for row in sessions if row["event_date"] == day]
        with_click = sum(1 for row in visits if row["click_count"])
        number_of_clicks = sum(clicks[row["impression_id"]] for row in clicked)
        users, clickers = {row["user_id"] for row in own}, {row["user_id"] for row in clicked}
        counts = (len(own), len(users), len(clicked), number_of_clicks, len(clickers), len(orphans))
        rates = (len(clicked) / len(own) if own else None, with_click / len(visits) if visits else None)
        funnel.append((day, *counts, len(visits), with_click, *rates))
    assert _values(lake, "FROM funnel") == funnel


def test_impressions_without_a_cost_are_counted_and_not_taken_for_free(spark: SparkSession, tmp_path: Path) -> None:
    timeline = """
        12:00:00  imp  i1 u1 a cost=5
        12:00:01  imp  i2 u1 a
        12:00:02  imp  i3 u2 b
        12:00:03  imp  i4 u2 c cost=0
        12:00:04  clk  k1 u2 ->i3
        12:15:00  clk  k2 u2 ->i1
    """
    settings = Settings.model_validate({"attribute": {"window": "1h"}})
    source = write_files(tmp_path / "source", Case("prices", timeline, STANDARD).files())
    lake = open_lake(str(tmp_path / "lake"))
    run_in(spark, settings, lake, source, measure=True)
    chosen = "SELECT campaign_id, impressions, cost_micros, impressions_without_cost FROM daily_campaigns"
    assert _values(lake, chosen) == [("a", 2, 5, 1), ("b", 1, None, 1), ("c", 1, 0, 0)]
    windows = "SELECT campaign_id, impressions, clicks, cost_micros, valid_cost_micros FROM campaign_stats ORDER BY ALL"
    assert _values(lake, windows) == [("a", 0, 1, 0, 0), ("a", 2, 0, 5, 5), ("b", 1, 1, None, None), ("c", 1, 0, 0, 0)]
    averages = "SELECT key, value_count FROM moving_averages WHERE is_last ORDER BY ALL"
    assert _values(lake, averages) == [("a", 1), ("c", 1)], "an average of what is not known is not 0"


def test_the_quarantine_is_what_was_not_requeued(spark: SparkSession, tmp_path: Path) -> None:
    lake = open_lake(str(tmp_path / "lake"))
    file = "file:///in/0000.jsonl#bytes=0-9999"
    latin, broken = '{"v": "\u00fc"}'.encode("latin-1"), b'{"v": 2'
    records = [Record(broken, file, _NOON), Record(broken, file, _NOON), Record(latin, file, _NOON)]
    put(spark, lake, 0, _NOON, [*records, Record(b"[]", file, _NOON)], Settings())
    bronze = spark.read.format("delta").load(lake.table(BRONZE_EVENTS))
    rejected = bronze.toArrow().to_pylist()
    again = [
        {**row, "verdict": "ok", "reason": None, "requeued_from": _NOON, "ingest_time": _NOON + timedelta(hours=1)}
        # The text of the record whose bytes are no text is that of another, which did fit.
        for row in [next(row for row in rejected if row["raw"] == broken.decode()), *_twin(rejected)]
    ]
    append(spark, lake, BRONZE_EVENTS, [*_twin(rejected), *again])
    expected = in_quarantine(spark.read.format("delta").load(lake.table(BRONZE_EVENTS)))
    columns = [name for name, _ in VIEWS["quarantine"].columns]
    assert comparable(rows_of(lake, "FROM quarantine")) == comparable(expected.select(*columns).toArrow().to_pylist())
    assert len(rows_of(lake, "FROM requeued")) == len(again)
    assert {row["verdict"] for row in rows_of(lake, "FROM quarantine")} == {"invalid_utf8", "not_an_object"}


def _twin(rejected: list[dict[str, Any]]) -> list[dict[str, Any]]:
    row = next(row for row in rejected if row["verdict"] == "invalid_utf8")
    return [{**row, "verdict": "invalid_event_type", "reason": "other"}]


def test_late_events_say_how_late(spark: SparkSession, tmp_path: Path) -> None:
    lake = open_lake(str(tmp_path / "lake"))
    event = {
        **dict.fromkeys(LATE_EVENTS.column_names),
        "event_type": "click",
        "event_id": "c",
        "event_time": _NOON,
        "ingest_time": _NOON + timedelta(hours=5, milliseconds=7),
        "event_date": _NOON.date(),
        "cause": "late_click",
        "is_expired": False,
        "repair": 1,
    }
    append(spark, lake, LATE_EVENTS, [event])
    ((kind, event_id, delay),) = _values(lake, "SELECT event_type, event_id, delay_ms FROM late")
    assert (kind, event_id, delay) == ("click", "c", 5 * 3_600_000 + 7)


def test_rows_that_failed_validation_are_told_with_their_table(spark: SparkSession, tmp_path: Path) -> None:
    lake = open_lake(str(tmp_path / "lake"))
    with pytest.raises(LakeError, match=r"no row of .* has failed validation; run `adloom validate`"):
        rows_of(lake, "FROM failing")
    for table in (SESSIONS, CAMPAIGN_STATS):
        failing = Table(table.name, failing_rows_key(table), "", table.columns)
        append(spark, lake, failing, good_rows(table.name)[:1])
        spark.sql(f"ALTER TABLE delta.`{lake.failing_rows(table)}` ADD COLUMNS (reasons ARRAY<STRING>)")
    rows = rows_of(lake, 'FROM failing ORDER BY "table"')
    assert [row["table"] for row in rows] == ["campaign_stats", "sessions"]
    session = good_rows("sessions")[0]
    shown = json.loads(rows[1]["row"])
    assert shown["session_start"] == f"{session['session_start']:%Y-%m-%dT%H:%M:%S}.000000Z"
    assert len(shown["events"]) == len(session["events"])


@pytest.mark.parametrize("name", [name for name, view in VIEWS.items() if view.sql])
def test_views_have_the_columns_that_they_declare(spark: SparkSession, lake: Lake, name: str) -> None:
    for table in (LATE_EVENTS, MARKS, *CREDIT_TABLES):
        create_table(spark, lake, table)
    with open_sql(lake) as sql:
        rows = sql.run(f"FROM {name}")
        assert rows is not None
        assert rows.columns == [column for column, _ in VIEWS[name].columns]


def test_a_state_stays_the_same_until_it_is_refreshed(spark: SparkSession, tmp_path: Path) -> None:
    lake, count = open_lake(str(tmp_path / "lake")), "SELECT count(*) AS n FROM attributions"
    append(spark, lake, ATTRIBUTIONS, good_rows("attributions")[:1])
    with open_sql(lake) as sql:
        assert _count(sql, count) == 1
        append(spark, lake, ATTRIBUTIONS, good_rows("attributions")[1:2])
        assert _count(sql, count) == 1
        assert _count(sql, "SELECT count(*) FROM daily_campaigns") == 1
        sql.refresh()
        assert _count(sql, count) == 2


def _count(sql: LakeSql, statement: str) -> int:
    rows = sql.run(statement)
    assert rows is not None
    return int(rows.fetchall()[0][0])


def test_any_kind_of_statement_finds_the_tables(lake: Lake) -> None:
    for statement in (
        "SELECT * FROM attributions JOIN sessions USING (user_id)",
        "PIVOT Attributions ON status USING count(*) GROUP BY event_date",
        "DESCRIBE daily_campaigns",
        "SUMMARIZE campaign_stats",
        "WITH attributions AS (SELECT 1 AS one) SELECT one, (SELECT count(*) FROM sessions) FROM attributions",
        "CREATE TEMP TABLE kept AS FROM funnel; SELECT * FROM kept",
    ):
        assert rows_of(lake, statement), statement


def test_partitions_that_a_filter_excludes_are_not_read(lake: Lake) -> None:
    first, *others = sorted((lake.path / SILVER_EVENTS.path).glob("event_type=*"))
    hidden = others[0].rename(others[0].with_name("hidden"))
    try:
        kind = first.name.partition("=")[2]
        assert _values(lake, f"SELECT count(*) > 0 FROM silver WHERE event_type = '{kind}'") == [(True,)]
        with open_sql(lake) as sql:
            rows = sql.run("SELECT count(event_id) FROM silver")
            assert rows is not None
            with pytest.raises(LakeError, match=r"a data file of .* cannot be read; was it vacuumed"):
                sql.write(rows, lake.path / "never", "FORMAT csv, HEADER")
    finally:
        hidden.rename(others[0])


def test_what_is_wrong_is_said(lake: Lake) -> None:
    for statement, as_of, error, message in (
        ("FROM nowhere", NOW, SettingsError, f"no table 'nowhere'; there are {', '.join(NAMES)}"),
        ("FROM memory.sessions", NOW, SettingsError, "no table 'sessions'"),
        ("SELEC", NOW, SqlError, "syntax error"),
        ("SELECT nothing FROM sessions", NOW, SqlError, '"nothing" not found'),
        ("FROM restatements", NOW, LakeError, "has no table restatements .*; `adloom repair` writes it"),
        ("FROM days", NOW, LakeError, "has no table days .*; `adloom days` writes it"),
        ("FROM sessions", AsOf(versions={"sessions": 99}), LakeError, "sessions has no version 99; it has versions up"),
        (
            "FROM sessions, attributions",
            AsOf(version=0),
            SettingsError,
            "name the table of a version, as in sessions=0",
        ),
    ):
        with pytest.raises(error, match=message):
            rows_of(lake, statement, as_of)
