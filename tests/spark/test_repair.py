"""Late events correct gold: drained and repaired, a lake equals an independent computation over all it received."""

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from pyspark.sql import SparkSession

from expectations.counts import counts_present_rows
from spark_jobs.contracts.repair import RepairPlan
from spark_jobs.contracts.settings import Settings
from spark_jobs.contracts.tables import (
    ATTRIBUTIONS,
    CAMPAIGN_STATS,
    LATE_EVENTS,
    MOVING_AVERAGES,
    RESTATEMENTS,
    SESSIONS,
    SILVER_EVENTS,
    USER_STATUS,
    Table,
)
from spark_jobs.generator.generate import generate
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.jobs.accounts import balance
from spark_jobs.jobs.repair import repair
from spark_jobs.lake.layout import Lake
from spark_jobs.runtime.lakes import open_lake
from tests.support.lakes import read_ledger, read_table
from tests.support.oracle import Expected, Row, assert_same_rows, comparable, expected_tables
from tests.support.runs import run_in

_GOLD = (ATTRIBUTIONS, SESSIONS, CAMPAIGN_STATS, MOVING_AVERAGES, USER_STATUS)
_FILE_BY_FILE = Settings.model_validate({"ingest": {"max_bytes_per_batch": 1}})


@dataclass
class _Day:
    """A drained day with late events: the rows of gold before its repair, and the repair."""

    lake: Lake
    expected: Expected
    before: dict[Table, list[Row]]
    plan: RepairPlan


@pytest.fixture(scope="module")
def day(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> _Day:
    folder = tmp_path_factory.mktemp("late")
    source, lake = folder / "source", open_lake(str(folder / "lake"))
    generate(GeneratorSpec(events=2500, seed=59, files=8, late=0.05, duplicates=0.05, malformed=0.01), source)
    run_in(spark, _FILE_BY_FILE, lake, source, measure=True)
    expected = expected_tables(source, _FILE_BY_FILE, datetime.now(UTC))
    before = {table: comparable(read_table(lake, table), table) for table in _GOLD}
    plan = repair(spark, _FILE_BY_FILE, lake)
    assert plan
    return _Day(lake, expected, before, plan)


@pytest.mark.parametrize("table", _GOLD, ids=lambda table: table.name)
def test_each_table_equals_an_independent_computation(table: Table, day: _Day) -> None:
    due = day.expected.rows(table)
    assert Counter(map(repr, day.before[table])) != Counter(map(repr, due)), "nothing is late: the test shows nothing"
    assert_same_rows(read_table(day.lake, table), due, table)


def test_late_events_are_those_that_silver_lacks(day: _Day) -> None:
    late, silver = ({row[:2] for row in read_table(day.lake, table)} for table in (LATE_EVENTS, SILVER_EVENTS))
    due = {row[:2] for row in day.expected.rows(SILVER_EVENTS)}
    assert late == due - silver
    assert len(read_table(day.lake, LATE_EVENTS)) == len(late) == day.plan.late_events
    assert day.plan.pending == 0


def test_the_accounts_balance_after_a_repair(spark: SparkSession, day: _Day) -> None:
    before = read_ledger(day.lake)
    assert not counts_present_rows(day.lake), "a validation would hold the repaired tables against it"
    after = balance(spark, _FILE_BY_FILE, day.lake, drained=True)
    assert (after.late, after.late_found, after.late_expired) == (before.late, day.plan.late_events, 0)
    assert (after.session_late, after.attribution_late) == (0, 0)
    assert counts_present_rows(day.lake)


def test_each_changed_row_is_told(day: _Day) -> None:
    told = Counter((row[1], row[2]) for row in read_table(day.lake, RESTATEMENTS))
    for name, part in day.plan.tables.items():
        updates = told[name, "update"]
        assert told[name, "insert"] + updates == part.inserts
        assert told[name, "delete"] + updates == part.deletes


def test_a_second_repair_changes_nothing(spark: SparkSession, day: _Day) -> None:
    tables = (*_GOLD, RESTATEMENTS, LATE_EVENTS)
    before = {table: day.lake.newest_commit(table.path) for table in tables}
    assert repair(spark, _FILE_BY_FILE, day.lake) is None
    assert {table: day.lake.newest_commit(table.path) for table in tables} == before
