"""Every table suite against good rows, and against one planted fault per rule."""

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from expectations.quarantine import failing_rows
from expectations.rules import Severity
from expectations.suites import Suite, table_suites
from spark_jobs.config.choices import Clock, DeduplicateMode
from spark_jobs.config.sections import DeduplicateSettings, MovingAverageSettings, UserStatusSettings
from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import BRONZE_EVENTS, GROSS_CREDIT_TABLES, NET_CREDIT_TABLES
from tests.expectations.faults import FAULTS, Fault, Spoil
from tests.expectations.good_rows import apart, frame, good_rows

if TYPE_CHECKING:
    from expectations.engine import Engine

_NAMES = tuple(FAULTS)
_USER = "user_id_not_null"
_SHORTEST = {"watermark": "1ms"}
_SHORT = Settings.model_validate(
    {
        "attribute": {"window": "1ms", "impression_watermark": "1ms", "click_watermark": "1ms"},
        **dict.fromkeys(("deduplicate", "sessionize", "campaign_stats", "moving_average", "user_status"), _SHORTEST),
    }
)

_STRICT = Settings.model_validate({"ingest": {"nobody": []}})
"""Every event needs a user."""


@dataclass(frozen=True)
class _Planted:
    """The prepared rows of all cases of a table; ``owner`` is the rule whose fault they contain, or ``good``.

    ``failing`` counts the rows of each case that break each rule, by (owner, rule); ``broken`` has the rules that fail
    in each case.
    """

    suite: Suite
    rows: DataFrame
    failing: Counter[tuple[str, str]]
    broken: dict[str, set[str]]

    def unexpected(self, engine: "Engine", case: str, owner: str | None = None) -> dict[str, int]:
        """For each rule that does not hold, how many rows (of ``owner``) Great Expectations reports."""
        from expectations.engine import subjects

        rows = self.rows.where(F.col("owner") == owner) if owner else self.rows
        outcomes = engine.check(subjects(rows, self.suite.rules), f"{self.suite.table.name} {case}", self.suite.rules)
        return {outcome.rule.name: outcome.unexpected_count for outcome in outcomes if not outcome.holds}


@pytest.fixture(scope="module")
def planted(spark: SparkSession) -> dict[str, _Planted]:
    """By table name; all cases of a table share one DataFrame, so a dozen of them cost one Spark job."""
    return {suite.table.name: _plant(spark, suite) for suite in table_suites(_STRICT) if suite.table.name in FAULTS}


def _plant(spark: SparkSession, suite: Suite) -> _Planted:
    name = suite.table.name
    spoils: dict[str, Spoil] = {"good": lambda _rows: None} | {fault.rule: fault.spoil for fault in FAULTS[name]}
    rows, owners = [], []
    for case, (rule, spoil) in enumerate(spoils.items()):
        spoilt = good_rows(name)
        spoil(spoilt)
        rows += apart(spoilt, case)
        owners += [rule] * len(spoilt)
    prepared = suite.prepare(frame(spark, name, rows, owners), None)
    every = spark.createDataFrame(prepared.collect(), prepared.schema).coalesce(1)
    reasons = failing_rows(every, suite.rules).select("owner", "reasons").collect()
    failing = Counter((row[0], reason.split(":")[0]) for row in reasons for reason in row[1])
    return _Planted(suite, every, failing, {owner: _broken(every, suite, failing, owner) for owner in spoils})


def _broken(rows: DataFrame, suite: Suite, failing: Counter[tuple[str, str]], owner: str) -> set[str]:
    """The row rules that the quarantine query found broken, and the rules about a share that do not hold."""
    broken = {rule for of, rule in failing if of == owner}
    for rule in suite.rules:
        if not rule.keeps_rows:
            (share,) = rows.where(F.col("owner") == owner).agg(F.avg(F.expr(rule.violation).cast("int"))).first() or (
                0,
            )
            broken |= {rule.name} if share > 1 - rule.mostly else set()
    return broken


@pytest.mark.parametrize("name", _NAMES)
def test_every_rule_has_a_planted_fault(planted: dict[str, _Planted], name: str) -> None:
    declared = [rule.name for rule in planted[name].suite.rules]
    assert len(declared) == len(set(declared)), "a rule's name is unique in its suite"
    assert [fault.rule for fault in FAULTS[name] if fault.rule not in declared] == []
    assert [rule for rule in declared if rule not in {fault.rule for fault in FAULTS[name]}] == []


def test_a_table_without_faults_of_its_own_is_net_and_has_the_rules_of_its_gross_table() -> None:
    suites = {suite.table: suite for suite in table_suites(Settings())}
    assert {table for table in suites if table.name not in FAULTS} == {*NET_CREDIT_TABLES}
    for net, gross in zip(NET_CREDIT_TABLES, GROSS_CREDIT_TABLES, strict=True):
        assert [rule.name for rule in suites[net].rules] == [rule.name for rule in suites[gross].rules]
        assert suites[net].prepare is suites[gross].prepare


@pytest.mark.parametrize("name", _NAMES)
def test_every_rule_holds_on_good_rows(engine: "Engine", planted: dict[str, _Planted], name: str) -> None:
    assert planted[name].unexpected(engine, "good", "good") == {}
    assert planted[name].broken["good"] == set()


@pytest.mark.parametrize(
    ("name", "fault"),
    [pytest.param(name, fault, id=f"{name}-{fault.rule}") for name, faults in FAULTS.items() for fault in faults],
)
def test_a_planted_fault_breaks_its_rule_and_no_other(
    engine: "Engine", planted: dict[str, _Planted], name: str, fault: Fault
) -> None:
    due = {fault.rule, *fault.companions}
    assert planted[name].broken[fault.rule] == due
    if any(not rule.keeps_rows for rule in planted[name].suite.rules if rule.name in due):
        assert planted[name].unexpected(engine, fault.rule, fault.rule).keys() == due


def test_where_an_id_may_mean_nobody_an_event_may_have_no_user_but_a_session_and_a_status_have_one() -> None:
    def demanding(settings: Settings) -> set[str]:
        return {suite.table.name for suite in table_suites(settings) for one in suite.rules if one.name == _USER}

    always, of_events = {"sessions", "user_status"}, {"bronze", "silver", "attributions"}
    assert demanding(Settings()) == always
    assert demanding(_STRICT) == {*always, *of_events, "paths", "net_paths"}


@pytest.mark.parametrize(
    ("known", "broken"), [(0, {"known_users_share"}), (0.05, {"known_users_share"}), (0.15, set())]
)
def test_users_who_are_hardly_ever_known_are_a_warning(spark: SparkSession, known: float, broken: set[str]) -> None:
    (suite,) = (suite for suite in table_suites(Settings()) if suite.table == BRONZE_EVENTS)
    rows = [dict(good_rows(BRONZE_EVENTS.name)[0], user_id="u" if n < known * 20 else None) for n in range(20)]
    prepared = suite.prepare(frame(spark, BRONZE_EVENTS.name, rows, ["all"] * len(rows)), None)
    assert _broken(prepared, suite, Counter(), "all") == broken
    assert [rule.severity for rule in suite.rules if rule.name in broken] == [Severity.WARNING] * len(broken)


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("moving_averages", "ends_after_start"),
        ("moving_averages", "no_silence_within"),
        ("user_status", "follows_the_one_before"),
    ],
)
def test_in_processing_time_rows_may_have_any_order_of_event_times(spark: SparkSession, name: str, rule: str) -> None:
    by_arrival = Settings(
        moving_average=MovingAverageSettings(clock=Clock.PROCESSING),
        user_status=UserStatusSettings(clock=Clock.PROCESSING),
    )
    (suite,) = (suite for suite in table_suites(by_arrival) if suite.table.name == name)
    (fault,) = (fault for fault in FAULTS[name] if fault.rule == rule)
    rows = good_rows(name)
    fault.spoil(rows)
    assert failing_rows(suite.prepare(frame(spark, name, rows, [rule] * len(rows)), None), suite.rules).isEmpty()


@pytest.mark.parametrize(
    ("hours_later", "settings", "broken"),
    [
        (2.9, Settings(), {"event_unique"}),
        (3.1, Settings(), set()),
        (0, _SHORT, {"event_unique"}),
        (3.1, Settings(deduplicate=DeduplicateSettings(mode=DeduplicateMode.FOREVER)), {"event_unique"}),
    ],
)
def test_an_id_that_is_used_again_is_another_event(
    spark: SparkSession, hours_later: float, settings: Settings, broken: set[str]
) -> None:
    """Nearer than ``deduplicate.watermark`` it would be a copy."""
    (suite,) = (suite for suite in table_suites(settings) if suite.table.name == "silver")
    first, *others = good_rows("silver")
    again = first["event_time"] + timedelta(hours=hours_later)
    rows = [first, *others, {**first, "event_time": again, "event_date": again.date()}]
    failing = failing_rows(suite.prepare(frame(spark, "silver", rows, ["all"] * len(rows)), None), suite.rules)
    assert {reason.split(":")[0] for row in failing.collect() for reason in row["reasons"]} == broken


def test_rows_of_two_events_of_one_id_are_two_rows(spark: SparkSession) -> None:
    (suite,) = (suite for suite in table_suites(Settings()) if suite.table.name == "attributions")
    rows, times = good_rows("attributions"), ("impression_time", "click_time")
    moved = [{name: row[name] + timedelta(days=1) for name in times if row.get(name)} for row in rows]
    later = [
        {**row, **own, "event_date": (own.get("impression_time") or own["click_time"]).date()}
        for row, own in zip(rows, moved, strict=True)
    ]
    both = frame(spark, "attributions", [*rows, *later], ["all"] * 2 * len(rows))
    assert failing_rows(suite.prepare(both, None), suite.rules).isEmpty()


@pytest.mark.parametrize("name", _NAMES)
def test_great_expectations_finds_the_rows_that_the_quarantine_query_finds(
    engine: "Engine", planted: dict[str, _Planted], name: str
) -> None:
    found = planted[name].unexpected(engine, "faults")
    about_rows = [rule.name for rule in planted[name].suite.rules if rule.keeps_rows]
    due: Counter[str] = Counter()
    for (_, rule), rows in planted[name].failing.items():
        due[rule] += rows
    assert {rule: found.get(rule, 0) for rule in about_rows} == {rule: due[rule] for rule in about_rows}
