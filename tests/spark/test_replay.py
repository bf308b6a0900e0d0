"""A replay finds exactly the rows that are not as bronze says, says why, and puts them in place if it is told to."""

import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from spark_jobs.config.durations import Window
from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import (
    ATTRIBUTIONS,
    CAMPAIGN_STATS,
    MOVING_AVERAGES,
    RESTATEMENTS,
    SESSIONS,
    SILVER_EVENTS,
    USER_STATUS,
    Table,
)
from spark_jobs.generator.generate import generate
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from spark_jobs.queries.identity import first_of_each
from spark_jobs.restatements.repair import repair
from spark_jobs.restatements.replay import Replayed, replay
from spark_jobs.restatements.replay_model import Replay, replay_key
from spark_jobs.spark.open_lake import OpenLake
from tests.support.lakes import GOLD, read_table
from tests.support.oracle import Expected, assert_same_rows, expected_tables
from tests.support.runs import ONE_BY_ONE, run_in

_FILE_BY_FILE = Settings.model_validate({"ingest": ONE_BY_ONE})
_DAY = datetime(2025, 1, 6, tzinfo=UTC)
_WHOLE = Window(_DAY - timedelta(days=1), _DAY + timedelta(days=2))
_FILES = 8


@dataclass
class _Day:
    """A drained day with late events, and what is due of it; ``late``: as it was before it was repaired."""

    source: Path
    late: Lake
    expected: Expected


@pytest.fixture(scope="module")
def day(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> _Day:
    folder = tmp_path_factory.mktemp("day")
    source, lake = folder / "source", open_lake(str(folder / "late"))
    spec = GeneratorSpec(
        events=1500, seed=59, files=_FILES, late=0.05, duplicates=0.05, malformed=0.01, conversions=0.5
    )
    generate(spec, source)
    run_in(spark, _FILE_BY_FILE, lake, source, measure=True)
    return _Day(source, lake, expected_tables(source, _FILE_BY_FILE, datetime.now(UTC)))


@pytest.fixture(scope="module")
def repaired(spark: SparkSession, day: _Day, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    lake = _copy(day.late, tmp_path_factory.mktemp("repaired") / "lake")
    plan = repair(OpenLake.of(lake, _FILE_BY_FILE, spark))
    assert plan
    assert plan.late_events > 0, "nothing is late for silver: the test shows little"
    return lake


def _copy(lake: Lake, place: Path) -> Lake:
    return open_lake(str(shutil.copytree(lake.path, place)))


def _assert_as_due(lake: Lake, expected: Expected, tables: tuple[Table, ...] = GOLD) -> None:
    for table in tables:
        assert_same_rows(read_table(lake, table), expected.rows(table), table)


def _told(lake: Lake) -> Counter[tuple[str, str, str]]:
    names = RESTATEMENTS.column_names
    table, outcome, cause = (names.index(name) for name in ("table_name", "outcome", "cause"))
    return Counter((row[table], row[outcome], row[cause]) for row in read_table(lake, RESTATEMENTS))


def _counts(found: Replayed, kind: str) -> dict[str, int]:
    """By table, how many rows are of that kind, if there are any."""
    return {name: getattr(table, kind) for name, table in found.report.tables.items() if getattr(table, kind)}


@dataclass(frozen=True)
class _Tampering:
    """What somebody does to a table: a row changed, one deleted, one inserted."""

    table: Table
    change: Callable[[Row], dict[str, Any]]
    insert: Callable[[Row], dict[str, Any]]

    def do(self, spark: SparkSession, lake: Lake) -> None:
        there = spark.read.format("delta").load(lake.table(self.table))
        rows = sorted(there.where(self._is_fit()).collect(), key=str)
        changed, deleted, like = rows[5], rows[17], rows[29]
        others = there.collect()
        for row in (changed, deleted):
            others.remove(row)
        made = [row.asDict() | new for row, new in ((changed, self.change(changed)), (like, self.insert(like)))]
        values = [tuple(row[name] for name in there.columns) for row in (*[one.asDict() for one in others], *made)]
        spark.createDataFrame(values, there.schema).write.format("delta").mode("overwrite").save(lake.table(self.table))

    def _is_fit(self) -> Any:
        return F.col("status") == "clicked" if self.table == ATTRIBUTIONS else F.lit(True)


_TAMPERINGS = (
    # The inserted row is one that is there, a second time.
    _Tampering(ATTRIBUTIONS, lambda row: {"cost_micros": row.cost_micros + 1}, lambda _row: {}),
    _Tampering(SESSIONS, lambda row: {"user_id": f"{row.user_id}-x"}, lambda _row: {"session_id": "made up"}),
    _Tampering(
        CAMPAIGN_STATS, lambda row: {"cost_micros": row.cost_micros + 7}, lambda _row: {"campaign_id": "made up"}
    ),
    _Tampering(MOVING_AVERAGES, lambda row: {"mean": row["mean"] + 1.0}, lambda _row: {"value_count": 99}),
    _Tampering(USER_STATUS, lambda _row: {"status": "gone"}, lambda _row: {"user_id": "made up"}),
)


@pytest.mark.slow
def test_tampering_is_found_to_the_row_and_put_right(
    spark: SparkSession, day: _Day, repaired: Lake, tmp_path: Path
) -> None:
    lake = _copy(repaired, tmp_path / "lake")
    told = _told(lake)
    for tampering in _TAMPERINGS:
        tampering.do(spark, lake)
    # A changed row of silver proves nothing: gold is what bronze says, and stays so.
    spark.sql(f"UPDATE delta.`{lake.table(SILVER_EVENTS)}` SET user_id = 'x' WHERE event_type = 'click'")
    found = replay(OpenLake.of(lake, _FILE_BY_FILE, spark), _WHOLE, is_applied=True)
    assert _counts(found, "unknown") == {table.name: 3 for table in GOLD}
    assert _counts(found, "late") == _counts(found, "open") == {}
    assert _counts(found, "same") == {table.name: len(day.expected.rows(table)) - 2 for table in GOLD}
    campaigns = found.report.tables[CAMPAIGN_STATS.name].campaigns
    assert sum(one.cost_micros for campaign, one in campaigns.items() if campaign != "made up") != 0
    assert campaigns["made up"].impressions <= 0
    assert {(row.change, row.is_late) for rows in found.first.values() for row in rows} == {
        (change, False) for change in ("insert", "update", "delete")
    }
    _assert_as_due(lake, day.expected)
    assert _told(lake) - told == {(table.name, "applied", "replay"): 3 for table in GOLD}
    again = replay(OpenLake.of(lake, _FILE_BY_FILE, spark), _WHOLE, is_applied=True)
    assert again.plan is None
    assert again.report.audited
    assert Replay.model_validate_json(lake.files.read(replay_key(_WHOLE)) or b"") == again.report


@pytest.mark.slow
def test_what_no_repair_has_brought_in_is_late_and_a_repair_finds_nothing_more_to_change(
    spark: SparkSession, day: _Day, repaired: Lake, tmp_path: Path
) -> None:
    lake = _copy(day.late, tmp_path / "lake")
    seen = replay(OpenLake.of(lake, _FILE_BY_FILE, spark), _WHOLE)
    assert set(_counts(seen, "late")) == {table.name for table in GOLD}
    assert _counts(seen, "unknown") == {}
    assert lake.newest_commit(RESTATEMENTS.path) is None
    found = replay(OpenLake.of(lake, _FILE_BY_FILE, spark), _WHOLE, is_applied=True)
    assert found.report.tables == seen.report.tables
    assert found.plan
    _assert_as_due(lake, day.expected)
    assert {cause for _, _, cause in _told(lake)} <= {"late_impression", "late_click", "late_activity"}
    assert _told(lake) == _told(repaired), "the same changes as a repair makes"
    plan = repair(OpenLake.of(lake, _FILE_BY_FILE, spark))
    assert plan
    assert plan.number == 2
    assert plan.late_events > 0 == plan.changes
    _assert_as_due(lake, day.expected)
    assert replay(OpenLake.of(lake, _FILE_BY_FILE, spark), _WHOLE).report.audited
    assert repair(OpenLake.of(lake, _FILE_BY_FILE, spark)) is None


@pytest.mark.slow
def test_open_rows_stay_and_the_rest_of_the_day_comes_right(spark: SparkSession, day: _Day, tmp_path: Path) -> None:
    source, lake = tmp_path / "source", open_lake(str(tmp_path / "lake"))
    source.mkdir()
    first, *rest = sorted(day.source.glob("*.jsonl*"))
    for file in (first, *rest[:3]):
        shutil.copy2(file, source)
    run_in(spark, _FILE_BY_FILE, lake, source, drain=False, measure=True)
    repair(OpenLake.of(lake, _FILE_BY_FILE, spark))
    before = {table: read_table(lake, table) for table in GOLD}
    found = replay(OpenLake.of(lake, _FILE_BY_FILE, spark), _WHOLE, is_applied=True)
    assert set(_counts(found, "open")) == {table.name for table in GOLD}
    assert _counts(found, "unknown") == {}
    # A mean closes by itself, though a late value that it has waits for those after it: so it is late, and put right.
    assert set(found.plan.tables if found.plan else ()) <= {MOVING_AVERAGES.name}
    others = [table for table in GOLD if table != MOVING_AVERAGES]
    assert {table: read_table(lake, table) for table in others} == {table: before[table] for table in others}
    for file in rest[3:]:
        shutil.copy2(file, source)
    run_in(spark, _FILE_BY_FILE, lake, source, measure=True)
    repair(OpenLake.of(lake, _FILE_BY_FILE, spark))
    _assert_as_due(lake, day.expected)
    assert replay(OpenLake.of(lake, _FILE_BY_FILE, spark), _WHOLE).report.audited


@pytest.mark.slow
def test_frozen_rows_are_recorded_once_and_stay(spark: SparkSession, day: _Day, tmp_path: Path) -> None:
    lake = _copy(day.late, tmp_path / "lake")
    settings = _FILE_BY_FILE.model_copy(
        update={"repair": _FILE_BY_FILE.repair.model_copy(update={"freeze_after": timedelta(0)})}
    )
    plan = repair(OpenLake.of(lake, settings, spark))
    assert plan
    assert plan.changes == 0 < sum(part.frozen for part in plan.tables.values())
    told = _told(lake)
    names = (ATTRIBUTIONS.name, CAMPAIGN_STATS.name)
    found = replay(OpenLake.of(lake, settings, spark), _WHOLE, tables=names, is_applied=True)
    assert _counts(found, "late")
    assert _counts(found, "unknown") == {}
    assert found.plan is None, "all of it is on record"
    _TAMPERINGS[2].do(spark, lake)
    tampered = read_table(lake, CAMPAIGN_STATS)
    found = replay(OpenLake.of(lake, settings, spark), _WHOLE, tables=names, is_applied=True)
    assert _counts(found, "unknown") == {CAMPAIGN_STATS.name: 3}
    assert Counter(read_table(lake, CAMPAIGN_STATS)) == Counter(tampered)
    assert _told(lake) - told == {(CAMPAIGN_STATS.name, "frozen", "replay"): 3}
    again = replay(OpenLake.of(lake, settings, spark), _WHOLE, tables=names, is_applied=True)
    assert _counts(again, "unknown") == {CAMPAIGN_STATS.name: 3}
    assert again.plan is None


@pytest.mark.slow
def test_adjacent_windows_count_each_row_once(spark: SparkSession, day: _Day) -> None:
    whole = replay(OpenLake.of(day.late, _FILE_BY_FILE, spark), _WHOLE)
    # Cuts where it hurts: at a session's first event, and one microsecond after another's.
    starts = sorted(row[1].replace(tzinfo=UTC) for row in day.expected.rows(SESSIONS))
    cuts = [starts[len(starts) // 3], starts[2 * len(starts) // 3] + timedelta(microseconds=1)]
    edges = [_WHOLE.begin, *cuts, _WHOLE.end]
    parts = [replay(OpenLake.of(day.late, _FILE_BY_FILE, spark), window) for window in map(Window, edges, edges[1:])]
    for kind in ("same", "late", "open", "unknown"):
        sums = Counter[str]()
        for part in parts:
            sums.update(_counts(part, kind))
        assert sums == _counts(whole, kind)
    for name, table in whole.report.tables.items():
        clicks = Counter[str]()
        for part in parts:
            for campaign, one in part.report.tables[name].campaigns.items():
                clicks[campaign] += one.clicks
        assert {campaign: count for campaign, count in clicks.items() if count} == {
            campaign: one.clicks for campaign, one in table.campaigns.items() if one.clicks
        }


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param("events/0/9", "events/0/10", id="kafka"),
        pytest.param("file:///in/a.jsonl#bytes=900-1000", "file:///in/a.jsonl#bytes=1000-1100", id="file"),
    ],
)
def test_of_copies_in_one_batch_the_first_is_the_one_at_the_lower_offset(
    spark: SparkSession, first: str, second: str
) -> None:
    names = ("event_type", "event_id", "event_time", "ingest_time", "source")
    copies = [
        ("click", "c1", _DAY + timedelta(seconds=number), _DAY, source) for number, source in enumerate((first, second))
    ]
    found = first_of_each(spark.createDataFrame(copies, names), timedelta(hours=3)).collect()
    assert [row["event_time"].astimezone(UTC) for row in found] == [_DAY]
