"""Every table suite against good rows, and against one planted fault per rule."""

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

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
def cases(spark: SparkSession, settings: Settings) -> dict[str, DataFrame]:
    """By table the rows of all its cases, prepared; ``owner`` is the rule whose fault they hold, or ``good``.

    The cases lie apart in one table, so that a dozen of them cost one Spark job.
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
        found[name] = spark.createDataFrame(prepared.collect(), prepared.schema).coalesce(1)
    return found


@pytest.fixture(scope="module")
def told(settings: Settings, cases: dict[str, DataFrame]) -> dict[str, Counter[tuple[str, str]]]:
    """By table how many rows of each case the quarantine query finds to break each rule."""
    found = {}
    for suite in table_suites(settings):
        rows = failing_rows(cases[suite.table.name], suite.rules).select("owner", "reasons").collect()
        found[suite.table.name] = Counter((row[0], reason.split(":")[0]) for row in rows for reason in row[1])
    return found


def _unexpected(engine: "Engine", suite: Suite, rows: DataFrame, case: str) -> dict[str, int]:
    """How many rows Great Expectations finds to break each rule that does not hold."""
    from expectations.engine import subjects

    outcomes = engine.check(subjects(rows, suite.rules), case, suite.rules)
    return {outcome.rule.name: outcome.unexpected_count for outcome in outcomes if not outcome.holds}


@pytest.mark.parametrize("name", _NAMES)
def test_every_rule_has_a_planted_fault(settings: Settings, name: str) -> None:
    declared = [rule.name for rule in _suite(settings, name).rules]
    assert len(declared) == len(set(declared)), "a rule's name is unique in its suite"
    assert [fault.rule for fault in FAULTS[name] if fault.rule not in declared] == []
    assert [rule for rule in declared if rule not in {fault.rule for fault in FAULTS[name]}] == []


@pytest.mark.parametrize("name", _NAMES)
def test_every_rule_holds_on_good_rows(
    engine: "Engine",
    settings: Settings,
    cases: dict[str, DataFrame],
    told: dict[str, Counter[tuple[str, str]]],
    name: str,
) -> None:
    good = cases[name].where("owner = 'good'")
    assert _unexpected(engine, _suite(settings, name), good, f"{name} good") == {}
    assert [rule for owner, rule in told[name] if owner == "good"] == []


@pytest.mark.parametrize(
    ("name", "fault"),
    [pytest.param(name, fault, id=f"{name}-{fault.rule}") for name, faults in FAULTS.items() for fault in faults],
)
def test_a_planted_fault_breaks_its_rule_and_no_other(
    engine: "Engine",
    settings: Settings,
    cases: dict[str, DataFrame],
    told: dict[str, Counter[tuple[str, str]]],
    name: str,
    fault: Fault,
) -> None:
    suite, due = _suite(settings, name), {fault.rule, *fault.companions}
    about_rows = {rule.name for rule in suite.rules if rule.keeps_rows}
    assert {rule for owner, rule in told[name] if owner == fault.rule} == due & about_rows
    if due - about_rows:
        rows = cases[name].where(F.col("owner") == fault.rule)
        assert _unexpected(engine, suite, rows, f"{name} {fault.rule}").keys() == due


@pytest.mark.parametrize("name", _NAMES)
def test_great_expectations_finds_the_rows_that_the_quarantine_query_finds(
    engine: "Engine",
    settings: Settings,
    cases: dict[str, DataFrame],
    told: dict[str, Counter[tuple[str, str]]],
    name: str,
) -> None:
    suite = _suite(settings, name)
    found = _unexpected(engine, suite, cases[name], f"{name} faults")
    due: Counter[str] = Counter()
    for (_, rule), rows in told[name].items():
        due[rule] += rows
    assert {rule.name: found.get(rule.name, 0) for rule in suite.rules if rule.keeps_rows} == {
        rule.name: due[rule.name] for rule in suite.rules if rule.keeps_rows
    }
