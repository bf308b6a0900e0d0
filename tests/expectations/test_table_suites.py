"""Every table suite against good rows, and against one planted fault per rule."""

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import DataFrame, SparkSession

from expectations.quarantine import failing_rows
from expectations.suites import Suite, table_suites
from spark_jobs.contracts.settings import Settings
from tests.expectations.faults import FAULTS, Fault, Spoil
from tests.expectations.good_rows import apart, frame, good_rows

if TYPE_CHECKING:
    from expectations.engine import Engine

_NAMES = tuple(FAULTS)


def _suite(settings: Settings, name: str) -> Suite:
    return next(suite for suite in table_suites(settings) if suite.table.name == name)


@pytest.fixture(scope="module")
def cases(spark: SparkSession, settings: Settings) -> dict[tuple[str, str], DataFrame]:
    """Table and rule to the spoilt rows, prepared; the rule ``good`` to the good ones.

    The cases of a table are prepared together, in one Spark job instead of a dozen each, and then taken apart.
    """
    found = {}
    for suite in table_suites(settings):
        name = suite.table.name
        spoils: dict[str, Spoil] = {"good": lambda _rows: None} | {fault.rule: fault.spoil for fault in FAULTS[name]}
        rows, owners = [], []
        for case, (rule, spoil) in enumerate(spoils.items()):
            spoilt = good_rows(name)
            spoil(spoilt)
            rows += apart(spoilt, case)
            owners += [rule] * len(spoilt)
        prepared = suite.prepare(frame(spark, name, rows, owners), None)
        collected = prepared.collect()
        for rule in spoils:
            of_rule = [row for row in collected if row["owner"] == rule]
            found[name, rule] = spark.createDataFrame(of_rule, prepared.schema).coalesce(1)
    return found


def _broken(engine: "Engine", suite: Suite, rows: DataFrame, case: str) -> tuple[set[str], set[str]]:
    """The rules that Great Expectations and the quarantine query find broken, and proof that they count alike."""
    from expectations.engine import subjects

    outcomes = engine.check(subjects(rows, suite.rules), case, suite.rules)
    reasons = [reason for row in failing_rows(rows, suite.rules).select("reasons").collect() for reason in row[0]]
    for outcome in outcomes:
        if outcome.rule.keeps_rows:
            told = sum(reason.startswith(f"{outcome.rule.name}: ") for reason in reasons)
            assert told == outcome.unexpected_count, outcome.rule.name
    return {outcome.rule.name for outcome in outcomes if not outcome.holds}, {r.split(":")[0] for r in reasons}


@pytest.mark.parametrize("name", _NAMES)
def test_every_rule_has_a_planted_fault(settings: Settings, name: str) -> None:
    declared = [rule.name for rule in _suite(settings, name).rules]
    assert len(declared) == len(set(declared)), "a rule's name is unique in its suite"
    assert [fault.rule for fault in FAULTS[name] if fault.rule not in declared] == []
    assert [rule for rule in declared if rule not in {fault.rule for fault in FAULTS[name]}] == []


@pytest.mark.parametrize("name", _NAMES)
def test_every_rule_holds_on_good_rows(
    engine: "Engine", settings: Settings, cases: dict[tuple[str, str], DataFrame], name: str
) -> None:
    assert _broken(engine, _suite(settings, name), cases[name, "good"], f"{name} good") == (set(), set())


@pytest.mark.parametrize(
    ("name", "fault"),
    [pytest.param(name, fault, id=f"{name}-{fault.rule}") for name, faults in FAULTS.items() for fault in faults],
)
def test_a_planted_fault_breaks_its_rule_and_no_other(
    engine: "Engine", settings: Settings, cases: dict[tuple[str, str], DataFrame], name: str, fault: Fault
) -> None:
    suite = _suite(settings, name)
    broken, told = _broken(engine, suite, cases[name, fault.rule], f"{name} {fault.rule}")
    assert broken == {fault.rule, *fault.companions}
    assert told == broken & {rule.name for rule in suite.rules if rule.keeps_rows}
