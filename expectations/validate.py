"""Validates a lake: each table's suite, then the tables together, then the report."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from expectations.counts import COMPARED, compare, covers_present, measure
from expectations.credit import count_unbalanced
from expectations.days.figures import days_figures
from expectations.history import keep
from expectations.landing import publish_pages, write_landing_page
from expectations.quarantine import failing_rows, keep_failing_rows
from expectations.ranges import Rows, range_to_validate, read_rows, read_state
from expectations.rejected_records.count import count_rejected
from expectations.restated.count import count_restated
from expectations.results import FailedExpectation, TableResult, ValidationResult
from expectations.rules import Rule, Severity
from expectations.suites import Suite, lake_rules, table_suites
from expectations.suites.lake import NAME as LAKE
from spark_jobs.contract.tables import CREDIT_TABLES
from spark_jobs.contract.validation import RuleResult
from spark_jobs.days.day import read_days
from spark_jobs.errors import LakeError
from spark_jobs.lake.store.files import json_bytes
from spark_jobs.ledger.ledger_files import last_ledger
from spark_jobs.places import REPORTS, VALIDATED
from spark_jobs.queries.registry import TABLES
from spark_jobs.spark.open_lake import OpenLake

if TYPE_CHECKING:
    from expectations.engine import Engine, RuleOutcome

__all__ = ["FailedExpectation", "TableResult", "ValidationResult", "validate_lake"]

NOTHING_NEW = "nothing new"
"""The note for a table with no new rows since its last validated version; it counts as passed."""


def validate_lake(
    lake: OpenLake, *, whole: bool = False, on_progress: Callable[[str], None] | None = None
) -> ValidationResult:
    """Validates ``lake`` and writes the report.

    Each table is validated from the version after the last one that passed. The first time, if ``whole`` is true, or if
    change data is missing, the whole table is. A table's validated version advances only if no critical rule of its
    suite is broken. The rules about the tables together always read every table in full.

    Args:
        lake: the lake to validate.
        whole: whether to validate all rows again.
        on_progress: called with a line of text at each step.

    Raises:
        LakeError: there is no lake, or one of its files is damaged.
    """
    if not any(lake.has(table) for table in TABLES):
        raise LakeError(f"{lake.root} holds no table of a lake; pass the --lake that a run has written")
    report = on_progress or (lambda _line: None)
    report("starting Great Expectations")
    # Imported late: the import takes seconds, and a missing lake is refused first.
    from expectations.engine import Engine  # noqa: PLC0415

    started = datetime.now(UTC)
    with tempfile.TemporaryDirectory() as folder:
        engine = Engine(Path(folder), started)
        run = _Run(lake, engine, started, read_state(lake, VALIDATED), whole)
        # Credit is computed only where somebody asks for it: a lake without its tables lacks nothing.
        due = [
            suite for suite in table_suites(lake.settings) if suite.table not in CREDIT_TABLES or lake.has(suite.table)
        ]
        results = [run.validate(suite, report) for suite in due]
        report("comparing the tables with the ledger and with each other")
        results.append(run.validate_together(lake_rules(lake.settings), bronze=results[0]))
        report("counting the records that did not fit")
        rejected = count_rejected(lake, lake.settings.validation.examples)
        report("counting what repairs changed")
        restated = count_restated(lake)
        report("writing the report")
        pages = publish_pages(lake, engine.write_docs())
    result = ValidationResult(
        f"{REPORTS}/index.html", tuple(replace(found, docs=pages.get(found.table)) for found in results)
    )
    write_landing_page(lake, result, started, rejected, restated, days_figures(read_days(lake)))
    keep(lake, result, started)
    lake.files.write(VALIDATED, json_bytes(run.validated | _good_versions(result)))
    return result


@dataclass(frozen=True)
class _Run:
    """State shared by the steps of one validation."""

    lake: OpenLake
    engine: "Engine"
    started: datetime
    validated: dict[str, int]
    whole: bool

    def validate(self, suite: Suite, report: Callable[[str], None]) -> TableResult:
        """Checks ``suite`` on the rows that are due."""
        table = suite.table
        if not self.lake.has(table):
            return TableResult(table.name, note="missing: no run has created this table yet")
        versions = range_to_validate(self.lake, table, self.validated.get(table.name), whole=self.whole)
        report(f"validating {table.name}: {versions}")
        if versions.is_empty:
            return TableResult(table.name, versions, note=NOTHING_NEW)
        rows = read_rows(self.lake, table, versions)
        if rows.is_empty:
            return TableResult(table.name, versions, note=NOTHING_NEW)
        return self._check(suite, rows)

    def _check(self, suite: Suite, rows: Rows) -> TableResult:
        from expectations.engine import subjects  # noqa: PLC0415 as above

        table, versions = suite.table, rows.range
        whole = rows.table
        if (earlier := suite.earlier(self.lake)) is not None:
            whole = (rows.new if whole is None else whole).unionByName(earlier)
        prepared = suite.prepare(rows.new, whole)
        checked = subjects(prepared, suite.rules).cache()
        try:
            count = checked.count()
            outcomes = self.engine.check(checked, table.name, suite.rules)
        finally:
            checked.unpersist()
        result = _as_result(table.name, outcomes)
        failing = None
        if any(not outcome.holds and outcome.rule.keeps_rows for outcome in outcomes):
            found = failing_rows(prepared, suite.rules)
            failing = keep_failing_rows(found, table, self.lake, self.started, versions.last)
        return replace(result, range=versions, rows=count, note=versions.note, failing=failing)

    def validate_together(self, rules: tuple[Rule, ...], bronze: TableResult) -> TableResult:
        """Checks ``rules`` on the tables together; ``bronze`` says how many rows are new."""
        measured = {
            table.name: measure(table, self.lake.read(table) if self.lake.has(table) else None) for table in COMPARED
        }
        first_time = bronze.range is None or bronze.range.whole
        ledger = last_ledger(self.lake)
        counts = compare(
            measured,
            ledger,
            None if first_time else bronze.rows,
            is_current=ledger is not None and covers_present(self.lake, ledger),
            credits_difference=count_unbalanced(self.lake),
        )
        outcomes = self.engine.check(counts.as_frame(self.lake.spark).coalesce(1), LAKE, rules)
        result = _as_result(LAKE, outcomes)
        observed = (replace(failure, observed=str(getattr(counts, failure.columns[0]))) for failure in result.failed)
        found = (rule.model_copy(update={"found": getattr(counts, rule.column)}) for rule in result.rules)
        return replace(result, rows=1, failed=tuple(observed), rules=tuple(found))


def _as_result(name: str, outcomes: "tuple[RuleOutcome, ...]") -> TableResult:
    broken = tuple(
        FailedExpectation(name, rule.name, (rule.column,), rule.severity, outcome.unexpected_count, rule.reason)
        for outcome in outcomes
        for rule in (outcome.rule,)
        if not outcome.holds
    )
    rules = tuple(_rule_result(outcome) for outcome in outcomes)
    return TableResult(name, passed=len(outcomes) - len(broken), failed=broken, rules=rules)


def _rule_result(outcome: "RuleOutcome") -> RuleResult:
    rule = outcome.rule
    return RuleResult(
        name=rule.name,
        kind=rule.kind.value,
        column=rule.column,
        reason=rule.reason,
        is_critical=rule.severity is Severity.CRITICAL,
        mostly=rule.mostly,
        holds=outcome.holds,
        found=outcome.unexpected_count,
    )


def _good_versions(result: ValidationResult) -> dict[str, int]:
    return {found.table: found.range.last for found in result.tables if found.range and not found.critical}
