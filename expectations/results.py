"""The results of a validation."""

from dataclasses import dataclass, field

from expectations.quarantine import FailingRows
from expectations.ranges import VersionRange
from expectations.rules import Severity
from spark_jobs.contract.validation import RuleResult


@dataclass(frozen=True)
class FailedExpectation:
    """A rule that does not hold.

    Attributes:
        table: Name of the table, or ``lake`` for a rule about the tables together.
        expectation: Name of the rule.
        columns: The columns the rule checks.
        severity: How serious the breach is.
        unexpected_count: How many rows break it.
        reason: What should hold, as a sentence.
        observed: For a rule about the tables together, the number found; else empty.
    """

    table: str
    expectation: str
    columns: tuple[str, ...]
    severity: Severity
    unexpected_count: int
    reason: str
    observed: str = ""


@dataclass(frozen=True)
class TableResult:
    """The outcome of one suite.

    Attributes:
        table: Name of the table, or ``lake`` for the rules about the tables together.
        range: The versions validated; None for ``lake`` and for a missing table.
        rows: How many rows were validated.
        passed: How many rules hold.
        failed: The rules that do not hold.
        note: A remark for the report: nothing new, table missing.
        docs: The lake key of the suite's Data Docs page; None if the suite did not run.
        failing: The failing rows that were stored.
        rules: What was found for each rule; empty if the suite did not run.
    """

    table: str
    range: VersionRange | None = None
    rows: int = 0
    passed: int = 0
    failed: tuple[FailedExpectation, ...] = ()
    note: str = ""
    docs: str | None = None
    failing: FailingRows | None = None
    rules: tuple[RuleResult, ...] = ()

    @property
    def critical(self) -> int:
        """How many critical rules do not hold."""
        return sum(failure.severity is Severity.CRITICAL for failure in self.failed)


@dataclass(frozen=True)
class ValidationResult:
    """The outcome of validating a lake; ``report`` is the lake key of the page to open."""

    report: str
    tables: tuple[TableResult, ...] = field(default_factory=tuple)

    @property
    def passed(self) -> int:
        """How many rules hold."""
        return sum(table.passed for table in self.tables)

    @property
    def failures(self) -> tuple[FailedExpectation, ...]:
        """Every rule that does not hold, critical ones first."""
        found = [failure for table in self.tables for failure in table.failed]
        return tuple(sorted(found, key=lambda failure: failure.severity is not Severity.CRITICAL))

    @property
    def failed(self) -> int:
        """How many rules do not hold, warnings included."""
        return len(self.failures)

    @property
    def critical(self) -> int:
        """How many critical rules do not hold."""
        return sum(table.critical for table in self.tables)

    @property
    def warnings(self) -> int:
        """How many rules of severity warning do not hold."""
        return self.failed - self.critical

    @property
    def succeeded(self) -> bool:
        """Whether every critical rule holds."""
        return not self.critical
