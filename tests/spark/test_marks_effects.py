"""What marks change in gold: equal to an independent computation, step by step, with late events."""

import shutil
from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from expectations.overview.invalid import count_invalid
from expectations.overview.page import write_overview
from spark_jobs.config.durations import Window
from spark_jobs.config.sections import S3Settings
from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import ATTRIBUTIONS, CAMPAIGN_STATS, MARKS, RESTATEMENTS, SILVER_EVENTS, Table
from spark_jobs.days.evidence import take_snapshot
from spark_jobs.days.restated import changes_since
from spark_jobs.generator.generate import generate
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from spark_jobs.marks.mark import apply_marks, update_marks
from spark_jobs.queries.notes import last_note
from spark_jobs.queries.registry import writer_of
from spark_jobs.restatements.marks_to_gold import apply_marks_to_gold
from spark_jobs.restatements.plan import PlanKind
from spark_jobs.restatements.plans import GOLD_PLANS
from spark_jobs.restatements.repair import repair
from spark_jobs.restatements.replay import replay
from spark_jobs.spark.open_lake import OpenLake
from tests.support.invalid import rule_set
from tests.support.lakes import read_table, rows_by_name
from tests.support.oracle import Mark, Row, assert_same_rows, expected_tables
from tests.support.queried import rows_of
from tests.support.runs import ONE_BY_ONE, run_in

pytestmark = pytest.mark.derived

_SETTINGS = Settings.model_validate({"ingest": ONE_BY_ONE})
_NET = (ATTRIBUTIONS, CAMPAIGN_STATS)
_NET_COLUMNS = ("invalid", "invalid_impression", "valid_impressions", "valid_clicks", "valid_cost_micros")
_ALL_TIMES = Window(datetime(2025, 1, 1, tzinfo=UTC), datetime(2025, 2, 1, tzinfo=UTC))
_SUMS = ("impressions", "clicks", "cost_micros")
_US = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 naive means UTC throughout
_BOTH = {"class": "givt", "kind": "rate", "event_type": ["impression", "click"], "key": "user_id"}
_SOON = {"class": "sivt", "kind": "delay", "event_type": "click"}
_A = rule_set(
    {"id": "many", **_BOTH, "event_type": "impression", "window": "10min", "threshold": 5},
    {"id": "soon", **_SOON, "threshold": "30s"},
    {"id": "again", "class": "givt", "kind": "repeat", "event_type": "click", "window": "1h", "threshold": 1},
)
_B = rule_set(
    {"id": "many", **_BOTH, "window": "1h", "threshold": 4},
    {"id": "soon", **_SOON, "threshold": "10s"},
)


@dataclass
class _Day:
    """A drained day with late events: before its repair, after it, and with the marks of the rules A."""

    source: Path
    late: Lake
    repaired: Lake
    marked: Lake


@pytest.fixture(scope="module")
def day(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> _Day:
    folder = tmp_path_factory.mktemp("net")
    source, late = folder / "source", open_lake(str(folder / "late"))
    generate(GeneratorSpec(events=400, seed=64, files=5, late=0.2, conversions=0.5, users=30), source)
    run_in(spark, _SETTINGS, late, source, measure=True)
    repaired = _copy(late, folder / "repaired")
    plan = repair(OpenLake.of(repaired, _SETTINGS, spark))
    assert plan
    assert plan.late_events, "nothing is late: the tests show less"
    marked = _copy(repaired, folder / "marked")
    apply_marks(OpenLake.of(marked, _SETTINGS, spark), _A)
    assert apply_marks_to_gold(OpenLake.of(marked, _SETTINGS, spark))
    return _Day(source, late, repaired, marked)


def _copy(lake: Lake, place: Path) -> Lake:
    return open_lake(str(shutil.copytree(lake.path, place)))


def _marks(lake: Lake) -> set[Mark]:
    newest: dict[tuple[Any, ...], bool] = {}
    for row in sorted(rows_by_name(lake, MARKS), key=lambda one: one["marked_at"]):
        us = (row["event_time"] - _EPOCH) // _US
        newest[row["event_type"], row["event_id"], us, row["rule_id"], row["rule_version"]] = row["revoked"]
    return {(*mark[:4],) for mark, is_revoked in newest.items() if not is_revoked}


def _gross(lake: Lake) -> dict[str, Counter[str]]:
    return {
        table.name: Counter(
            repr([row[name] for name in row if name not in _NET_COLUMNS]) for row in rows_by_name(lake, table)
        )
        for table in _NET
    }


def _rows(lake: Lake) -> dict[str, list[Row]]:
    return {table.name: sorted(read_table(lake, table), key=repr) for table in _NET}


def _assert_equal(lake: Lake, source: Path) -> None:
    expected = expected_tables(source, _SETTINGS, datetime.now(UTC), marks=_marks(lake))
    for table in _NET:
        assert_same_rows(read_table(lake, table), expected.rows(table), table)


def test_gold_with_marks_equals_an_independent_computation(day: _Day) -> None:
    rows = rows_by_name(day.marked, ATTRIBUTIONS)
    assert {len(row["invalid"] or ()) for row in rows} >= {0, 1, 2}, "no row has two rules: the test shows little"
    assert any(row["invalid"] and not row["invalid_impression"] and row["status"] == "clicked" for row in rows)
    windows = rows_by_name(day.marked, CAMPAIGN_STATS)
    assert 0 < sum(row["valid_clicks"] for row in windows) < sum(row["clicks"] for row in windows)
    _assert_equal(day.marked, day.source)


def test_gross_is_what_it_was(day: _Day) -> None:
    assert _gross(day.marked) == _gross(day.repaired)


def test_each_changed_row_is_told_with_the_event_that_is_marked(day: _Day) -> None:
    told = [row for row in rows_by_name(day.marked, RESTATEMENTS) if row["cause"] == "invalid_traffic"]
    plan = GOLD_PLANS.read(day.marked, 2)
    assert plan
    assert plan.kind is PlanKind.MARKS
    assert {row["repair"] for row in told} == {2}
    assert {row["change"] for row in told} == {"update"}
    assert Counter(row["table_name"] for row in told) == {name: part.inserts for name, part in plan.tables.items()}
    assert all(part.inserts == part.deletes > 0 for part in plan.tables.values())
    assert {(row["event_type"], row["event_id"]) for row in told} <= {mark[:2] for mark in _marks(day.marked)}
    assert all(not row[name] for row in told for name in ("impressions", "clicks", "cost_micros"))


def test_there_is_nothing_more_to_do(spark: SparkSession, day: _Day) -> None:
    newest = GOLD_PLANS.newest(day.marked)
    assert apply_marks_to_gold(OpenLake.of(day.marked, _SETTINGS, spark)) is None
    assert repair(OpenLake.of(day.marked, _SETTINGS, spark)) is None
    assert GOLD_PLANS.newest(day.marked) == newest


def test_days_are_restated_by_marks(spark: SparkSession, day: _Day) -> None:
    found = changes_since(
        OpenLake.of(day.marked, Settings(), spark), replace(take_snapshot(day.marked, _SETTINGS, None), last_repair=1)
    )
    plan = GOLD_PLANS.read(day.marked, 2)
    assert plan
    rows = Counter[str]()
    for change in found:
        rows[change.table] += change.rows
        assert (change.repair, change.impressions, change.clicks, change.cost_micros) == (2, 0, 0, 0)
    assert rows == {table.name: plan.changes_of(table.name) // 2 for table in _NET}


@pytest.mark.slow
def test_other_rules_and_back_give_the_gold_of_the_first(spark: SparkSession, day: _Day, tmp_path: Path) -> None:
    lake = _copy(day.marked, tmp_path / "lake")
    dry = apply_marks(OpenLake.of(lake, _SETTINGS, spark), _B, dry_run=True)
    before = rows_of(lake, _CAMPAIGNS)
    apply_marks(OpenLake.of(lake, _SETTINGS, spark), _B)
    assert apply_marks_to_gold(OpenLake.of(lake, _SETTINGS, spark))
    _assert_equal(lake, day.source)
    assert _rows(lake) != _rows(day.marked)
    assert _gross(lake) == _gross(day.marked)
    after = {row["campaign_id"]: row for row in rows_of(lake, _CAMPAIGNS)}
    names = ("impressions", "clicks", "cost_micros")
    differences = {
        row["campaign_id"]: tuple(after[row["campaign_id"]][name] - row[name] for name in names) for row in before
    }
    told = {one.campaign_id: (one.impressions, one.clicks, one.cost_micros) for one in dry.net}
    assert told == {campaign: counts for campaign, counts in differences.items() if any(counts)}
    apply_marks(OpenLake.of(lake, _SETTINGS, spark), _A)
    assert apply_marks_to_gold(OpenLake.of(lake, _SETTINGS, spark))
    assert _rows(lake) == _rows(day.marked)


_CAMPAIGNS = """
SELECT campaign_id, sum(valid_impressions)::BIGINT AS impressions, sum(valid_clicks)::BIGINT AS clicks,
    coalesce(sum(valid_cost_micros), 0)::BIGINT AS cost_micros
FROM daily_campaigns GROUP BY campaign_id ORDER BY campaign_id
"""


@pytest.mark.slow
def test_marks_before_a_repair_and_after_it_agree(spark: SparkSession, day: _Day, tmp_path: Path) -> None:
    lake = _copy(day.late, tmp_path / "lake")
    gross = _gross(lake)
    apply_marks(OpenLake.of(lake, _SETTINGS, spark), _A)
    told = replay(OpenLake.of(lake, _SETTINGS, spark), _ALL_TIMES, tables=[ATTRIBUTIONS.name])
    assert told.report.tables[ATTRIBUTIONS.name].unknown == 0, "marks that gold lacks explain why it differs"
    assert apply_marks_to_gold(OpenLake.of(lake, _SETTINGS, spark))
    assert _gross(lake) == gross
    assert repair(OpenLake.of(lake, _SETTINGS, spark))
    assert update_marks(OpenLake.of(lake, _SETTINGS, spark)), "late events are held against the rules too"
    assert apply_marks_to_gold(OpenLake.of(lake, _SETTINGS, spark))
    _assert_equal(lake, day.source)
    found = replay(OpenLake.of(lake, _SETTINGS, spark), _ALL_TIMES, tables=[table.name for table in _NET])
    assert all(table.audited for table in found.report.tables.values())


@pytest.mark.slow
def test_a_row_whose_gross_is_not_what_its_events_give_waits(spark: SparkSession, day: _Day, tmp_path: Path) -> None:
    lake = _copy(day.repaired, tmp_path / "lake")
    spark.sql(f"UPDATE delta.`{lake.table(CAMPAIGN_STATS)}` SET cost_micros = cost_micros + 1")
    gross = _gross(lake)
    apply_marks(OpenLake.of(lake, _SETTINGS, spark), _A)
    plan = apply_marks_to_gold(OpenLake.of(lake, _SETTINGS, spark))
    assert plan
    part = plan.tables[CAMPAIGN_STATS.name]
    assert (part.pending, part.inserts) == (part.events, 0)
    assert _gross(lake) == gross
    replay(OpenLake.of(lake, _SETTINGS, spark), _ALL_TIMES, tables=[CAMPAIGN_STATS.name], is_applied=True)
    _assert_equal(lake, day.source)


def test_rules_are_counted_as_plain_python_counts_them(day: _Day) -> None:
    silver = rows_by_name(day.marked, SILVER_EVENTS)
    at = {(row["event_type"], row["event_id"], (row["event_time"] - _EPOCH) // _US): row for row in silver}
    marks, pairs = _marks(day.marked), rows_by_name(day.marked, ATTRIBUTIONS)
    keys = {mark[:3] for mark in marks}
    bought = [row for key, row in at.items() if key[0] == "conversion" and key not in keys]
    buyers = {row["user_id"] for row in bought if not row["revokes"]}
    everybody = {row["user_id"] for row in silver} - {None}
    for line in rows_of(day.marked, "FROM invalid_by_rule"):
        own = {mark[:3] for mark in marks if mark[3] == line["rule_id"]}
        kinds = Counter(key[0] for key in own)
        assert [line[name] for name in ("impressions", "clicks", "conversions", "activities")] == [
            kinds[kind] for kind in ("impression", "click", "conversion", "activity")
        ]
        users = {at[key]["user_id"] for key in own if key in at} - {None}
        assert line["users"] == len(users)
        assert line["converting_ppm"] == (len(users & buyers) * 1_000_000 // len(users) if users else None)
        assert line["all_converting_ppm"] == len(everybody & buyers) * 1_000_000 // len(everybody)
        costs = {row["impression_id"]: row["cost_micros"] for row in pairs if _of(row, "impression") in own}
        assert line["cost_micros"] == (sum(costs.values()) if costs else None)
        clicks = [{_of(row, "impression"), _of(row, "click")} for row in pairs if row["status"] == "clicked"]
        assert line["invalid_clicks"] == sum(1 for both in clicks if both & own)
    assert {line["rule_id"] for line in rows_of(day.marked, "FROM invalid_by_rule")} == {"again", "many", "soon"}


def _of(row: dict[str, Any], kind: str) -> tuple[str, str, int] | None:
    """The key of the impression or click of a row of attributions."""
    time = row[f"{kind}_time"]
    return None if time is None else (kind, row[f"{kind}_id"], (time - _EPOCH) // _US)


def test_the_overview_shows_gross_and_net(spark: SparkSession, day: _Day) -> None:
    assert count_invalid(day.repaired, S3Settings()) is None, "nothing is marked"
    figures = count_invalid(day.marked, S3Settings())
    assert figures
    gross, net = figures.totals
    windows = rows_by_name(day.marked, CAMPAIGN_STATS)
    assert [gross.impressions, gross.clicks, gross.cost_micros] == [
        sum(row[name] for row in windows) for name in ("impressions", "clicks", "cost_micros")
    ]
    assert [net.impressions, net.clicks, net.cost_micros] == [
        sum(row[f"valid_{name}"] for row in windows) for name in ("impressions", "clicks", "cost_micros")
    ]
    assert 0 < net.cost_micros < gross.cost_micros
    assert [one.rule for one in figures.rules] == ["again", "many", "soon"]
    lake = day.marked
    page = (lake.files.read(write_overview(OpenLake.of(lake, Settings(), spark), datetime.now(UTC))) or b"").decode()
    assert 'id="invalid"' in page
    assert 'id="net_clicks"' in page
    assert 'id="net_cost"' in page
    assert "cost, net" in page


@pytest.mark.slow
def test_what_is_open_waits_for_a_later_look(spark: SparkSession, day: _Day, tmp_path: Path) -> None:
    lake, source = open_lake(str(tmp_path / "lake")), tmp_path / "source"
    files = sorted(day.source.iterdir())
    source.mkdir()
    for file in files[:-1]:
        shutil.copy2(file, source)
    run_in(spark, _SETTINGS, lake, source, drain=False)
    apply_marks(OpenLake.of(lake, _SETTINGS, spark), _A)
    plan = apply_marks_to_gold(OpenLake.of(lake, _SETTINGS, spark))
    assert plan
    assert plan.tables[ATTRIBUTIONS.name].pending > 0
    shutil.copy2(files[-1], source)
    run_in(spark, _SETTINGS, lake, source, measure=True)
    repair(OpenLake.of(lake, _SETTINGS, spark))
    update_marks(OpenLake.of(lake, _SETTINGS, spark))
    plan = apply_marks_to_gold(OpenLake.of(lake, _SETTINGS, spark))
    assert plan
    assert plan.pending == 0
    assert plan.tables[CAMPAIGN_STATS.name].inserts > 0, "a table that came later gets all marks"
    _assert_equal(lake, day.source)


@pytest.mark.slow
def test_a_table_of_an_earlier_version_gets_the_columns(spark: SparkSession, day: _Day, tmp_path: Path) -> None:
    lake = _copy(day.repaired, tmp_path / "lake")
    for table in _NET:
        old = spark.read.format("delta").load(lake.table(table)).drop(*_NET_COLUMNS)
        note = last_note(lake, writer_of(table).name)
        assert note
        writer = old.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
        writer.partitionBy(*table.partition_by).option("userMetadata", note.as_metadata()).save(lake.table(table))
    assert {row["valid_impressions"] == row["impressions"] for row in rows_of(lake, "FROM daily_campaigns")} == {True}
    apply_marks(OpenLake.of(lake, _SETTINGS, spark), _A)
    assert apply_marks_to_gold(OpenLake.of(lake, _SETTINGS, spark))
    assert {table.name: _plain(lake, table) for table in _NET} == {
        table.name: _plain(day.marked, table) for table in _NET
    }
    found = replay(OpenLake.of(lake, _SETTINGS, spark), _ALL_TIMES, tables=[table.name for table in _NET])
    assert all(table.audited for table in found.report.tables.values()), "null means that nothing is marked"


def _plain(lake: Lake, table: Table) -> list[str]:
    """The rows of ``table``, with net as numbers where null says that it equals gross."""
    rows = rows_by_name(lake, table)
    for row in rows:
        row |= {f"valid_{name}": row[name] for name in _SUMS if f"valid_{name}" in row and row[f"valid_{name}"] is None}
    return sorted(map(repr, rows))
