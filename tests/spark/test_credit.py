"""Credit of a lake that grows, with late conversions and touches: in the end equal to an independent computation."""

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.config.durations import Window
from spark_jobs.config.settings import Settings
from spark_jobs.contract.events import CONVERSION
from spark_jobs.contract.tables import (
    ATTRIBUTIONS,
    CREDIT_TABLES,
    CREDITS,
    GROSS_CREDIT_TABLES,
    LATE_EVENTS,
    NET_CREDIT_TABLES,
    NET_CREDITS,
    NET_PATHS,
    PATHS,
    RESTATEMENTS,
    SILVER_EVENTS,
    Table,
)
from spark_jobs.credit.due import has_work
from spark_jobs.credit.feed import refresh_feed, write_feed
from spark_jobs.credit.plan import FEED_DAYS, CreditFeed, CreditPlan
from spark_jobs.credit.run import credit
from spark_jobs.generator.generate import generate
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.log import commits
from spark_jobs.lake.open import open_lake
from spark_jobs.lake.records import find_record, write_record
from spark_jobs.places import CREDIT_FEED, CREDIT_RUNS
from spark_jobs.restatements.plan import Cause, PlanKind, RepairDone, RepairPlan, TablePlan, done_key
from spark_jobs.restatements.plans import GOLD_PLANS
from spark_jobs.restatements.repair import repair
from spark_jobs.spark.open_lake import OpenLake
from tests.support.credited import (
    Facts,
    Key,
    copy_lake,
    credit_rows,
    draw,
    due_rows,
    facts_of,
    in_order_of_arrival,
    mark,
)
from tests.support.lakes import read_table, rows_by_name
from tests.support.queried import rows_of
from tests.support.runs import ONE_BY_ONE, run_in
from tests.support.source_files import write_files

pytestmark = pytest.mark.derived

_SETTINGS = Settings.model_validate({"ingest": ONE_BY_ONE, "credit": {"view_lookback": "1h"}})
_ALL_TIMES = Window(datetime(2025, 1, 1, tzinfo=UTC), datetime(2025, 2, 1, tzinfo=UTC))
_DECIDED = RESTATEMENTS.column_names.index("decided_at")


@dataclass
class _Days:
    """A lake of a day with late events: its credits when it was drained, and after its repair.

    Before it was drained, some events were ``marked``.
    """

    lake: Lake
    drained: Lake
    facts: Facts
    marked: frozenset[Key]
    runs: list[CreditPlan | None]

    def due(self, table: Table, settings: Settings = _SETTINGS, marked: frozenset[Key] | None = None) -> list[Any]:
        """The rows that are due; without ``marked`` events in the tables that are net."""
        is_net = table in NET_CREDIT_TABLES
        expected = self.facts.credit(settings, (self.marked if marked is None else marked) if is_net else frozenset())
        return due_rows(expected, table)


@dataclass
class _Stage:
    """A run after marks have changed: its plan, the rows of the tables and what it told."""

    plan: CreditPlan
    marked: frozenset[Key]
    rows: dict[Table, list[Any]]
    told: list[dict[str, Any]]
    versions: list[int | None]


@pytest.fixture(scope="module")
def days(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> _Days:
    folder = tmp_path_factory.mktemp("credit")
    source, lake = folder / "source", open_lake(str(folder / "lake"))
    spec = GeneratorSpec(events=1200, seed=59, files=4, late=0, duplicates=0.05, conversions=1, users=80)
    generate(spec, folder / "made")
    arriving = sorted(write_files(folder / "arriving", in_order_of_arrival(folder / "made")).iterdir())
    source.mkdir()
    runs, marked = list[CreditPlan | None](), frozenset[Key]()
    for files, drain in ((arriving[:3], False), (arriving[3:], True)):
        for file in files:
            file.rename(source / file.name)
        run_in(spark, _SETTINGS, lake, source, drain=drain)
        if drain:
            marked = draw(lake, 0, 1)
            mark(spark, lake, marked)
        runs.append(credit(OpenLake.of(lake, _SETTINGS, spark)))
    assert not has_work(lake, _SETTINGS)
    assert repair(OpenLake.of(lake, _SETTINGS, spark))
    drained = copy_lake(lake, folder / "drained")
    runs.append(credit(OpenLake.of(lake, _SETTINGS, spark)))
    return _Days(lake, drained, facts_of(source, _SETTINGS), marked, runs)


@pytest.fixture(scope="module")
def remarked(spark: SparkSession, days: _Days, tmp_path_factory: pytest.TempPathFactory) -> list[_Stage]:
    """Other marks, then those of before, then the same by a second rule: after each a run."""
    lake, stages = copy_lake(days.lake, tmp_path_factory.mktemp("remarked")), list[_Stage]()
    for marked, rule in ((draw(lake, 1, 2), "drawn"), (days.marked, "drawn"), (days.marked, "other")):
        mark(spark, lake, marked, rule)
        assert has_work(lake, _SETTINGS)
        plan = credit(OpenLake.of(lake, _SETTINGS, spark))
        assert plan
        assert not has_work(lake, _SETTINGS)
        every = rows_by_name(lake, RESTATEMENTS)
        told = [row for row in every if row["decided_at"].replace(tzinfo=UTC) == plan.decided_at]
        rows = {table: credit_rows(lake, table) for table in CREDIT_TABLES}
        versions = [lake.newest_commit(table.path) for table in GROSS_CREDIT_TABLES]
        stages.append(_Stage(plan, marked, rows, told, versions))
    return stages


@pytest.mark.parametrize("table", CREDIT_TABLES, ids=lambda table: table.name)
def test_each_table_equals_an_independent_computation(table: Table, days: _Days) -> None:
    due = days.due(table)
    assert credit_rows(days.drained, table) != due, "nothing was late: the test shows nothing"
    assert credit_rows(days.lake, table) == due


def test_net_credit_begins_with_all_conversions_and_is_told_nowhere(days: _Days) -> None:
    first, drained, _ = days.runs
    assert first
    assert drained
    gross = {table.name for table in CREDIT_TABLES if table not in NET_CREDIT_TABLES}
    assert {*first.tables} == gross, "without marks there is no net credit"
    assert (drained.net_fresh, drained.net_again) == (first.fresh + drained.fresh, 0)
    assert credit_rows(days.lake, NET_PATHS) != credit_rows(days.lake, PATHS), "marks change nothing"
    assert not [row for row in read_table(days.lake, RESTATEMENTS) if Cause.INVALID_TRAFFIC in row]


@pytest.mark.slow
def test_other_marks_change_net_credit_and_those_of_before_give_it_back(days: _Days, remarked: list[_Stage]) -> None:
    other, back, _ = remarked
    for table in NET_CREDIT_TABLES:
        assert other.rows[table] == days.due(table, marked=other.marked)
        assert other.rows[table] != back.rows[table] == credit_rows(days.lake, table)
    assert other.plan.net_again > 0


@pytest.mark.slow
def test_gross_credit_is_the_same_whatever_is_marked(days: _Days, remarked: list[_Stage]) -> None:
    for stage in remarked:
        assert {table: stage.rows[table] for table in GROSS_CREDIT_TABLES} == {
            table: days.due(table) for table in GROSS_CREDIT_TABLES
        }
        assert stage.versions == [days.lake.newest_commit(table.path) for table in GROSS_CREDIT_TABLES]
        assert (stage.plan.fresh, stage.plan.again) == (0, 0)


@pytest.mark.slow
def test_a_second_mark_of_an_event_changes_nothing(remarked: list[_Stage]) -> None:
    _, back, again = remarked
    assert (again.plan.net_again, again.plan.changes) == (0, 0)
    assert again.rows == back.rows


@pytest.mark.slow
def test_each_change_of_net_credit_is_told_with_the_event_whose_mark_changed(
    days: _Days, remarked: list[_Stage]
) -> None:
    other, back, _ = remarked
    assert {row["table_name"] for row in other.told} == {table.name for table in NET_CREDIT_TABLES}
    for row in other.told:
        assert row["cause"] == Cause.INVALID_TRAFFIC
        assert (row["event_type"], row["event_id"]) in other.marked ^ days.marked
        assert row["received_at"], row
    assert {row["event_type"] for row in other.told} == {"impression", "click", "conversion"}
    for table in NET_CREDIT_TABLES:
        changes = Counter(row["change"] for row in other.told if row["table_name"] == table.name)
        assert changes["insert"] - changes["delete"] == len(other.rows[table]) - len(back.rows[table])
    there_and_back = Counter((row["table_name"], row["before"], row["after"]) for row in back.told)
    assert there_and_back == Counter((row["table_name"], row["after"], row["before"]) for row in other.told)


def test_a_conversion_is_computed_once_unless_something_came_late(days: _Days) -> None:
    first, drained, repaired = days.runs
    assert first
    assert drained
    assert repaired
    assert (first.fresh > 0, first.again) == (True, 0)
    assert (drained.fresh > 0, drained.again) == (True, 0)
    assert (repaired.fresh, repaired.again > 0) == (0, True)
    assert first.tables[PATHS.name].deletes == drained.tables[PATHS.name].deletes == 0
    assert repaired.tables[PATHS.name].deletes > 0, "no touch was late"


def test_every_conversion_shares_its_value_exactly(days: _Days) -> None:
    values = {row[0]: row[4] for row in read_table(days.lake, PATHS)}
    sums: Counter[tuple[str, str]] = Counter()
    for row in read_table(days.lake, CREDITS):
        sums[row[0], row[1]] += row[7]
    assert dict(sums) == {(path, model.value): values[path] for path in values for model in _SETTINGS.credit.models}


def test_what_was_written_and_what_was_told_give_what_is_there(days: _Days) -> None:
    told = rows_by_name(days.lake, RESTATEMENTS)
    for table in CREDIT_TABLES:
        own = [row for row in told if row["table_name"] == table.name]
        changes = Counter(row["change"] for row in own)
        before, after = len(read_table(days.drained, table)), len(read_table(days.lake, table))
        assert after - before == changes["insert"] - changes["delete"]
        assert {row["cause"] for row in own} <= {"late_impression", "late_click", "late_conversion"}
        assert {row["repair"] for row in own} == {1}
        assert all(row["event_id"] and row["received_at"] for row in own)
    assert {"insert", "update", "delete"} <= {row["change"] for row in told if row["table_name"] == CREDITS.name}


def test_no_commit_of_restatements_is_empty(days: _Days) -> None:
    """Each one makes the next update of gold/days start Spark."""
    newest = days.lake.newest_commit(RESTATEMENTS.path) or 0
    assert all(any(file.rows for file in one.added) for one in commits(days.lake, RESTATEMENTS, 0, newest))


def test_views_add_up_what_is_in_the_tables(days: _Days) -> None:
    paths = {row[0]: row for row in read_table(days.lake, PATHS)}
    values: Counter[tuple[Any, ...]] = Counter()
    shares: Counter[tuple[Any, ...]] = Counter()
    for conversion, model, _, campaign, *_, micros, ppm, currency, _, on in read_table(days.lake, CREDITS):
        values[on, campaign, model, currency] += micros
        shares[on, campaign, model, currency, paths[conversion][7] is None] += ppm
    daily = rows_of(days.lake, "FROM daily_credits")
    found = [tuple(row[name] for name in ("event_date", "campaign_id", "model", "currency")) for row in daily]
    assert {key: row["value_micros"] for key, row in zip(found, daily, strict=True)} == dict(values)
    for key, row in zip(found, daily, strict=True):
        parts = shares[(*key, True)], shares[(*key, False)]
        assert (row["conversions"], row["refunds"]) == (parts[0] / 1e6, parts[1] / 1e6)
    worth: Counter[str | None] = Counter()
    for path in paths.values():
        worth[path[5]] += path[4]
    of_models = rows_of(days.lake, "FROM credit_models")
    for model in _SETTINGS.credit.models:
        totals: Counter[str | None] = Counter()
        for line in of_models:
            totals[line["currency"]] += line[model.value] or 0
        assert totals == worth, model
    lengths = rows_of(days.lake, "FROM path_lengths")
    due = Counter((path[9], path[8]) for path in paths.values() if path[7] is None)
    assert {(line["path_length"], line["outcome"]): line["conversions"] for line in lengths} == due


def test_returns_are_told_gross_and_net_side_by_side(days: _Days) -> None:
    found = rows_of(days.lake, "FROM net_returns")
    for prefix, paths, credits_ in (("", PATHS, CREDITS), ("net_", NET_PATHS, NET_CREDITS)):
        signs = {row[0]: 1 if row[7] is None else -1 for row in read_table(days.lake, paths)}
        values: Counter[tuple[Any, ...]] = Counter()
        shares: Counter[tuple[Any, ...]] = Counter()
        for conversion, model, _, campaign, *_, micros, ppm, currency, _, _ in read_table(days.lake, credits_):
            values[campaign, model, currency] += micros
            shares[campaign, model, currency] += ppm * signs[conversion]
        for row in found:
            key = row["campaign_id"], row["model"], row["currency"]
            assert row[f"{prefix}value_micros"] == values.pop(key, 0)
            assert row[f"{prefix}conversions"] == pytest.approx(shares[key] / 1e6)
        assert not values
    assert any(row["value_micros"] != row["net_value_micros"] for row in found)


def test_dashboards_are_told_of_the_last_days_only(days: _Days, tmp_path: Path) -> None:
    lake, refunds = copy_lake(days.lake, tmp_path), {row[0] for row in read_table(days.lake, PATHS) if row[7]}
    rows = read_table(lake, CREDITS)
    newest = max(row[-1] for row in rows)
    due: Counter[tuple[str | None, ...]] = Counter()
    values: Counter[tuple[str | None, ...]] = Counter()
    for conversion, model, _, campaign, *_, micros, ppm, currency, _, on in rows:
        if on == newest:
            due[campaign, model, currency] += 0 if conversion in refunds else ppm
            values[campaign, model, currency] += micros
    until = datetime.combine(newest, datetime.min.time(), UTC) + timedelta(days=FEED_DAYS - 1)
    write_feed(lake, _SETTINGS.s3, 1, until)
    feed = find_record(lake, CREDIT_FEED, CreditFeed)
    assert feed
    assert feed.until == until
    told = {(one.campaign, one.model, one.currency): one for one in feed.credited}
    assert {key: one.value_micros for key, one in told.items()} == dict(values)
    assert {key: one.conversions for key, one in told.items()} == {key: ppm / 1e6 for key, ppm in due.items()}
    write_feed(lake, _SETTINGS.s3, 1, until + timedelta(days=1))
    assert find_record(lake, CREDIT_FEED, CreditFeed) == CreditFeed(run=1, until=until + timedelta(days=1), credited=())


def test_dashboards_are_told_what_a_killed_run_did_not_tell(days: _Days, tmp_path: Path) -> None:
    lake = copy_lake(days.lake, tmp_path)
    refresh_feed(lake, _SETTINGS.s3)
    told = lake.files.read(CREDIT_FEED)
    assert told
    for run in (2, 3):
        write_record(lake, CREDIT_FEED, CreditFeed(run=run, until=datetime(2020, 1, 1, tzinfo=UTC), credited=()))
        left = lake.files.read(CREDIT_FEED)
        refresh_feed(lake, _SETTINGS.s3)
        assert lake.files.read(CREDIT_FEED) == (told if run == 2 else left), (
            "written again although it is of the last run"
        )


def test_returns_hold_credits_against_costs(days: _Days) -> None:
    spent: Counter[str] = Counter()
    for line in rows_of(days.lake, "FROM daily_campaigns"):
        spent[line["campaign_id"]] += line["cost_micros"] or 0
    found = rows_of(days.lake, "FROM campaign_returns WHERE model = 'linear'")
    assert found
    for line in found:
        cost, conversions = spent[line["campaign_id"]], 0.0
        for other in found:
            conversions += other["conversions"] if other["campaign_id"] == line["campaign_id"] else 0
        assert (line["cost_micros"] or 0) == cost
        assert line["roas"] == (line["value_micros"] / cost if cost else None)
        assert line["cpa_micros"] == (pytest.approx(cost / conversions, abs=1) if conversions else None)
    assert {line["campaign_id"] for line in found} == set(spent), "also those that sold nothing"


def test_there_is_nothing_more_to_do(spark: SparkSession, days: _Days) -> None:
    versions = {table: days.lake.newest_commit(table.path) for table in (*CREDIT_TABLES, RESTATEMENTS)}
    assert not has_work(days.lake, _SETTINGS)
    assert credit(OpenLake.of(days.lake, _SETTINGS, spark)) is None
    assert {table: days.lake.newest_commit(table.path) for table in versions} == versions
    runs = days.lake.path / CREDIT_RUNS
    assert sorted(str(file.relative_to(runs)) for file in runs.rglob("*") if file.is_file()) == sorted(
        ["seen.json", *(f"{number}/{name}.json" for number in (1, 2, 3) for name in ("plan", "done"))]
    ), "rows of a plan that is done are kept"


@pytest.mark.parametrize(
    ("kind", "number", "is_work"),
    [
        pytest.param(PlanKind.MARKS, 2, False, id="marks"),
        pytest.param(PlanKind.REPLAY, 2, True, id="a replay"),
        pytest.param(PlanKind.MARKS, 3, True, id="marks, and what was before them is gone"),
    ],
)
def test_marks_in_attributions_give_credit_nothing_to_do(
    kind: PlanKind,
    number: int,
    is_work: bool,  # noqa: FBT001 a parameter
    days: _Days,
    tmp_path: Path,
) -> None:
    lake = copy_lake(days.lake, tmp_path)
    part = TablePlan(version=1, silver_version=1, watermark_ms=1, events=1, pending=0, inserts=1, deletes=1, frozen=0)
    plan = RepairPlan(
        number=number,
        kind=kind,
        draft="d",
        decided_at=datetime.now(UTC),
        bronze_version=-1,
        late_events=0,
        expired=0,
        tables={ATTRIBUTIONS.name: part},
    )
    GOLD_PLANS.write(lake, plan)
    lake.files.write(done_key(number), RepairDone(versions={}).model_dump_json().encode())
    assert has_work(lake, _SETTINGS) == is_work


@pytest.mark.slow
def test_other_settings_hold_for_a_window_that_is_computed_again(
    spark: SparkSession, days: _Days, tmp_path: Path
) -> None:
    lake = copy_lake(days.lake, tmp_path)
    other = Settings.model_validate({**_SETTINGS.model_dump(exclude_unset=True), "credit": {"models": "linear"}})
    dry = credit(OpenLake.of(lake, other, spark), window=_ALL_TIMES, dry_run=True)
    assert credit_rows(lake, CREDITS) == days.due(CREDITS)
    plan = credit(OpenLake.of(lake, other, spark), window=_ALL_TIMES)
    assert plan
    assert dry
    assert (dry.tables, dry.again) == (plan.tables, plan.again)
    events = read_table(lake, SILVER_EVENTS) + read_table(lake, LATE_EVENTS)
    assert (plan.fresh, plan.again) == (0, len({row[1] for row in events if row[0] == CONVERSION}))
    assert {table: credit_rows(lake, table) for table in CREDIT_TABLES} == {
        table: days.due(table, other) for table in CREDIT_TABLES
    }
    assert credit(OpenLake.of(lake, other, spark)) is None
