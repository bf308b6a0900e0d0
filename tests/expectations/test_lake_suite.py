"""The rules about the tables together, on a good lake and on one planted fault each."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import SparkSession

from expectations.counts import COMPARED, LakeCounts, Numbers, compare, measure
from expectations.credit import count_unbalanced, unbalanced
from expectations.quarantine import failing_rows
from expectations.suites import lake_rules
from spark_jobs.config.choices import JoinType
from spark_jobs.config.sections import AttributeSettings
from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import CREDITS, PATHS
from spark_jobs.credit.plan import CREDIT_PLANS
from spark_jobs.lake.open import open_lake
from spark_jobs.places import CREDIT_RUNS
from spark_jobs.queries.registry import TABLES_BY_NAME
from spark_jobs.restatements.plan import RepairDone, done_key
from spark_jobs.spark.open_lake import OpenLake
from tests.expectations.good_rows import Row, append, frame, good_ledger, good_rows
from tests.support.old_plans import credit_plan

if TYPE_CHECKING:
    from expectations.engine import Engine

Spoil = Callable[[list[Row]], None]


@dataclass(frozen=True)
class LakeFault:
    """A fault planted for ``rule``: a different ledger, spoilt tables (None: missing), no new rows, credits off."""

    rule: str
    ledger: Mapping[str, int] | None = field(default_factory=dict)
    tables: Mapping[str, Spoil | None] = field(default_factory=dict)
    new_rows: int | None = None
    credits_difference: int | None = None
    companions: tuple[str, ...] = ()


def _shift(by: timedelta, *columns: str) -> Spoil:
    def spoil(rows: list[Row]) -> None:
        for row in rows:
            row.update({column: row[column] + by for column in columns if row.get(column)})

    return spoil


_FAULTS = (
    LakeFault("ledger_received_not_null", ledger=None),
    LakeFault("received_is_accounted_for", ledger={"malformed_json": 0}),
    LakeFault("ok_is_accounted_for", ledger={"duplicate": 0}),
    LakeFault("nothing_unaccounted", ledger={"unaccounted": 1, "duplicate": 0}),
    LakeFault("nothing_surplus", ledger={"surplus": 1, "kept": 26, "duplicate": 2}),
    LakeFault("bronze_matches_ledger", ledger={"received": 30, "malformed_json": 2}),
    LakeFault(
        "ok_matches_ledger",
        ledger={"ok": 27, "duplicate": 0, "missing_ad_id": 1},
    ),
    LakeFault("requeued_matches_ledger", ledger={"requeued": 1}),
    LakeFault("silver_matches_ledger", ledger={"kept": 26, "late, no repair yet": 1}),
    LakeFault("attributions_match_silver", ledger={"attribute__pending": 1}),
    LakeFault("sessions_match_silver", ledger={"sessionize__late": 1}),
    LakeFault("silver_is_fresh", tables={"silver": _shift(timedelta(minutes=-61), "ingest_time")}),
    LakeFault("silver_events_are_fresh", tables={"silver": _shift(timedelta(minutes=-61), "event_time")}),
    LakeFault(
        "attributions_are_fresh", tables={"attributions": _shift(timedelta(hours=-6), "impression_time", "click_time")}
    ),
    LakeFault("sessions_are_fresh", tables={"sessions": _shift(timedelta(minutes=-76), "session_end")}),
    LakeFault("bronze_has_rows", tables={"bronze": None}, companions=("bronze_matches_ledger", "ok_matches_ledger")),
    LakeFault(
        "silver_has_events",
        tables={"silver": None},
        companions=("silver_matches_ledger", "attributions_match_silver", "sessions_match_silver"),
    ),
    LakeFault(
        "attributions_has_rows",
        tables={"attributions": None},
        companions=("attributions_match_silver",),
    ),
    LakeFault("sessions_has_rows", tables={"sessions": None}, companions=("sessions_match_silver",)),
    LakeFault("something_new", new_rows=0),
    LakeFault("credits_match_paths", credits_difference=1),
)


@pytest.fixture(scope="module")
def measured(spark: SparkSession) -> dict[str, Numbers]:
    return {table.name: measure(table, frame(spark, table.name, good_rows(table.name))) for table in COMPARED}


def _counts(spark: SparkSession, measured: dict[str, Numbers], fault: LakeFault) -> LakeCounts:
    numbers = dict(measured)
    for name, spoil in fault.tables.items():
        rows = good_rows(name)
        if spoil:
            spoil(rows)
        numbers[name] = measure(TABLES_BY_NAME[name], frame(spark, name, rows) if spoil else None)
    ledger = None if fault.ledger is None else good_ledger(**fault.ledger)
    return compare(numbers, ledger, fault.new_rows, credits_difference=fault.credits_difference)


@pytest.fixture(scope="module")
def counts(spark: SparkSession, measured: dict[str, Numbers]) -> dict[str, LakeCounts]:
    return {fault.rule: _counts(spark, measured, fault) for fault in (LakeFault("good"), *_FAULTS)}


def _broken(spark: SparkSession, settings: Settings, counts: LakeCounts) -> set[str]:
    found = failing_rows(counts.as_frame(spark), lake_rules(settings)).select("reasons").collect()
    return {reason.split(":")[0] for row in found for reason in row["reasons"]}


def test_every_rule_has_a_planted_fault(settings: Settings) -> None:
    assert {rule.name for rule in lake_rules(settings)} == {fault.rule for fault in _FAULTS}


def test_every_rule_holds_on_a_good_lake(
    spark: SparkSession, settings: Settings, counts: dict[str, LakeCounts]
) -> None:
    assert _broken(spark, settings, counts["good"]) == set()


@pytest.mark.parametrize("fault", [pytest.param(fault, id=fault.rule) for fault in _FAULTS])
def test_a_planted_fault_breaks_its_rule_and_no_other(
    spark: SparkSession, settings: Settings, counts: dict[str, LakeCounts], fault: LakeFault
) -> None:
    assert _broken(spark, settings, counts[fault.rule]) == {fault.rule, *fault.companions}


def test_great_expectations_finds_what_was_planted_for_each_rule(
    spark: SparkSession, engine: "Engine", settings: Settings, counts: dict[str, LakeCounts]
) -> None:
    from expectations.engine import subjects

    rules = lake_rules(settings)
    together = spark.createDataFrame(
        [row for count in counts.values() for row in count.as_frame(spark).collect()],
        next(iter(counts.values())).as_frame(spark).schema,
    ).coalesce(1)
    outcomes = engine.check(subjects(together, rules), "lake faults", rules)
    planted = [name for fault in _FAULTS for name in (fault.rule, *fault.companions)]
    assert {o.rule.name: o.unexpected_count for o in outcomes} == {
        rule.name: planted.count(rule.name) for rule in rules
    }


@pytest.mark.parametrize(
    ("join", "left_out", "expected"),
    [
        pytest.param(JoinType.INNER, 1, set(), id="inner join may leave out"),
        pytest.param(JoinType.LEFT_OUTER, 1, set(), id="left outer join may leave out"),
        pytest.param(JoinType.LEFT_OUTER, -1, {"attributions_match_silver"}, id="no join may invent"),
        pytest.param(JoinType.FULL_OUTER, 1, {"attributions_match_silver"}, id="full outer join leaves nothing out"),
    ],
)
def test_what_attributions_may_leave_out_depends_on_the_join(
    spark: SparkSession, measured: dict[str, Numbers], join: JoinType, left_out: int, expected: set[str]
) -> None:
    settings = Settings(attribute=AttributeSettings(join=join))
    counts = _counts(spark, measured, LakeFault("", ledger={"attribute__pending": -left_out}))
    assert _broken(spark, settings, counts) == expected


def test_credits_that_do_not_add_up_are_found_by_conversion_and_model(spark: SparkSession) -> None:
    paths, shared = good_rows("paths"), good_rows("credits")
    assert unbalanced(frame(spark, "paths", paths), frame(spark, "credits", shared)).isEmpty()
    shared[0]["credit_micros"] += 1
    shared[2]["credit_micros"] = shared[3]["credit_micros"] = 2**63 - 1
    shared[-2]["credit_micros"] = None
    shared[-1]["credit_micros"] = 5
    # Of the last one there is no path: while credit is computed, one table may be ahead.
    found = unbalanced(frame(spark, "paths", paths[:-1]), frame(spark, "credits", shared)).collect()
    assert {(row["conversion_id"], row["model"]) for row in found} == {
        ("p1", "linear"),
        ("p1", "last_touch"),
        ("p3", "linear"),
    }


def test_credits_are_not_compared_while_a_run_is_between_its_tables(spark: SparkSession, tmp_path: Path) -> None:
    lake = open_lake(str(tmp_path / "lake"))
    shared = good_rows("credits")
    shared[0]["credit_micros"] += 1
    append(spark, lake, PATHS, good_rows("paths"))
    append(spark, lake, CREDITS, shared)
    at = OpenLake.of(lake, Settings(), spark)
    assert count_unbalanced(at) == 1
    plan = credit_plan(1, is_window=False)
    CREDIT_PLANS.write(lake, plan)
    assert count_unbalanced(at) is None
    lake.files.write(done_key(1, CREDIT_RUNS), RepairDone().model_dump_json().encode())
    assert count_unbalanced(at) == 1
