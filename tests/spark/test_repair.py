"""Late events correct gold: drained and repaired, a lake equals an independent computation over all it received."""

import shutil
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from expectations.counts import covers_present
from spark_jobs.config.durations import Window
from spark_jobs.config.settings import Settings
from spark_jobs.contract.events import EVENT_TYPES, PERSONAL_FIELDS
from spark_jobs.contract.tables import ATTRIBUTIONS, LATE_EVENTS, RESTATEMENTS, SESSIONS, SILVER_EVENTS, Table
from spark_jobs.generator.generate import generate
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from spark_jobs.ledger.model import DUPLICATES, Ledger, RecordKind
from spark_jobs.ledger.update import balance, update_ledger
from spark_jobs.restatements.plan import RepairPlan
from spark_jobs.restatements.plans import GOLD_PLANS
from spark_jobs.restatements.repair import repair
from spark_jobs.restatements.replay import replay
from spark_jobs.spark.open_lake import OpenLake
from tests.support.lakes import GOLD, read_ledger, read_table, rows_by_name
from tests.support.oracle import Expected, Row, assert_same_rows, comparable, compared_columns, expected_tables
from tests.support.runs import ONE_BY_ONE, run_in

pytestmark = pytest.mark.derived

_ALL_TIMES = Window(datetime(2025, 1, 1, tzinfo=UTC), datetime(2025, 2, 1, tzinfo=UTC))
_FILE_BY_FILE = Settings.model_validate({"ingest": ONE_BY_ONE})


@dataclass
class _Day:
    """A drained day with late events: the rows of gold and the ledger before its repair, and the repair."""

    lake: Lake
    expected: Expected
    before: dict[Table, list[Row]]
    ledger: Ledger
    plan: RepairPlan


@pytest.fixture(scope="module")
def day(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> _Day:
    folder = tmp_path_factory.mktemp("late")
    source, lake = folder / "source", open_lake(str(folder / "lake"))
    spec = GeneratorSpec(
        events=1500, seed=64, files=6, late=0.3, duplicates=0.05, malformed=0.01, conversions=0.5, bots=0.1
    )
    generate(spec, source)
    run_in(spark, _FILE_BY_FILE, lake, source, measure=True)
    expected = expected_tables(source, _FILE_BY_FILE, datetime.now(UTC))
    before = {table: comparable(read_table(lake, table), table) for table in GOLD}
    ledger = update_ledger(lake, _FILE_BY_FILE)
    plan = repair(OpenLake.of(lake, _FILE_BY_FILE, spark))
    assert plan
    return _Day(lake, expected, before, ledger, plan)


@pytest.mark.parametrize("table", GOLD, ids=lambda table: table.name)
def test_each_table_equals_an_independent_computation(table: Table, day: _Day) -> None:
    due = day.expected.rows(table)
    assert Counter(map(repr, day.before[table])) != Counter(map(repr, due)), "nothing is late: the test shows nothing"
    assert_same_rows(read_table(day.lake, table), due, table)


def test_late_events_are_those_that_silver_lacks(day: _Day) -> None:
    late, silver = ({row[:2] for row in read_table(day.lake, table)} for table in (LATE_EVENTS, SILVER_EVENTS))
    due = {row[:2] for row in day.expected.rows(SILVER_EVENTS)}
    assert late == due - silver
    assert {kind for kind, _ in late} == set(EVENT_TYPES), "of each type one is late"
    assert len(read_table(day.lake, LATE_EVENTS)) == len(late) == day.plan.late_events
    assert day.plan.pending == 0


def test_late_events_keep_the_devices_that_they_name(day: _Day) -> None:
    names = ("event_type", "event_id", *PERSONAL_FIELDS)
    late = rows_by_name(day.lake, LATE_EVENTS)
    columns = compared_columns(SILVER_EVENTS)
    due = [dict(zip(columns, row, strict=True)) for row in day.expected.rows(SILVER_EVENTS)]
    found, wanted = ({tuple(map(row.get, names)) for row in rows} for rows in (late, due))
    assert found <= wanted
    assert all(ip and agent for _, _, ip, agent in found)


def test_the_accounts_balance_after_a_repair(day: _Day) -> None:
    after = balance(_FILE_BY_FILE, day.lake, drained=True)
    assert covers_present(day.lake, after)
    assert (after.late, after.rows(RecordKind.LATE_EXPIRED)) == (day.ledger.late, 0)


def test_each_changed_row_is_told(day: _Day) -> None:
    told = Counter((row[1], row[2]) for row in read_table(day.lake, RESTATEMENTS))
    for name, part in day.plan.tables.items():
        updates = told[name, "update"]
        assert told[name, "insert"] + updates == part.inserts
        assert told[name, "delete"] + updates == part.deletes


def test_the_ledger_learns_what_became_of_each_late_record(day: _Day) -> None:
    before, after, of_run = day.ledger, update_ledger(day.lake, _FILE_BY_FILE), read_ledger(day.lake)
    assert before.balances
    assert (before.rows(RecordKind.KEPT), before.quarantined) == (of_run.kept, of_run.quarantined)
    assert before.rows(RecordKind.LATE_AWAITING) == before.late >= of_run.late
    assert after.balances
    assert (after.late, after.rows(*DUPLICATES)) == (of_run.late, of_run.duplicates)
    assert after.rows(RecordKind.LATE_REPAIRED) == of_run.late


@pytest.mark.slow
def test_a_replay_finds_the_row_that_somebody_deleted_and_nothing_else(
    spark: SparkSession, day: _Day, tmp_path: Path
) -> None:
    lake = open_lake(str(shutil.copytree(day.lake.path, tmp_path / "lake")))
    (session, *_) = sorted(read_table(lake, SESSIONS))
    spark.sql(f"DELETE FROM delta.`{lake.table(SESSIONS)}` WHERE session_id = '{session[0]}'")
    names = (SESSIONS.name, ATTRIBUTIONS.name)
    found = replay(OpenLake.of(lake, _FILE_BY_FILE, spark), _ALL_TIMES, tables=names).report.tables
    sessions, attributions = (found[name] for name in names)
    assert (sessions.same, sessions.unknown) == (len(day.expected.rows(SESSIONS)) - 1, 1)
    assert (attributions.same, attributions.audited) == (len(day.expected.rows(ATTRIBUTIONS)), True)


def test_the_end_of_a_repair_names_the_versions_that_belong_together(day: _Day) -> None:
    done = GOLD_PLANS.done(day.lake, day.plan.number)
    assert done
    assert {table.name for table in GOLD} <= done.versions.keys()
    assert {table.name: done.versions[table.name] for table in GOLD} == {
        table.name: day.lake.newest_commit(table.path) for table in GOLD
    }


def test_a_second_repair_changes_nothing(spark: SparkSession, day: _Day) -> None:
    tables = (*GOLD, RESTATEMENTS, LATE_EVENTS)
    before = {table: day.lake.newest_commit(table.path) for table in tables}
    assert repair(OpenLake.of(day.lake, _FILE_BY_FILE, spark)) is None
    assert {table: day.lake.newest_commit(table.path) for table in tables} == before
