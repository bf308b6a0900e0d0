"""What a validation found."""

from dataclasses import dataclass, field

from expectations.quarantine import FailingRows
from expectations.ranges import VersionRange
from expectations.rules import Severity


@dataclass(frozen=True)
class FailedExpectation:
    """A rule that does not hold.

    Attributes:
        table: Name of the table, or ``lake`` for a rule on the tables together.
        expectation: Name of the rule.
        columns: What the rule looks at.
        severity: What the breach means.
        unexpected_count: Rows that break it.
        reason: What should hold, in plain words.
        observed: For a rule on the tables together, the number that was found; else empty.
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
        table: Name of the table, or ``lake`` for the rules on the tables together.
        range: The versions validated; None for ``lake`` and for a missing table.
        rows: Rows validated.
        passed: Rules that hold.
        failed: Rules that do not.
        note: What needs saying beside the numbers: nothing new, table missing.
        docs: Key in the lake of the suite's page of the Data Docs; None when the suite was not run.
        failing: The failing rows that were kept.
    """

    table: str
    range: VersionRange | None = None
    rows: int = 0
    passed: int = 0
    failed: tuple[FailedExpectation, ...] = ()
    note: str = ""
    docs: str | None = None
    failing: FailingRows | None = None

    @property
    def critical(self) -> int:
        """Critical rules that do not hold."""
        return sum(failure.severity is Severity.CRITICAL for failure in self.failed)


@dataclass(frozen=True)
class ValidationResult:
    """The outcome of a validation of a lake; ``report`` is the key in the lake of the page to open."""

    report: str
    tables: tuple[TableResult, ...] = field(default_factory=tuple)

    @property
    def passed(self) -> int:
        """Rules that hold."""
        return sum(table.passed for table in self.tables)

    @property
    def failures(self) -> tuple[FailedExpectation, ...]:
        """Every rule that does not hold, critical ones first."""
        found = [failure for table in self.tables for failure in table.failed]
        return tuple(sorted(found, key=lambda failure: failure.severity is not Severity.CRITICAL))

    @property
    def failed(self) -> int:
        """Rules that do not hold, warnings among them."""
        return len(self.failures)

    @property
    def critical(self) -> int:
        """Critical rules that do not hold."""
        return sum(table.critical for table in self.tables)

    @property
    def warnings(self) -> int:
        """Rules of severity warning that do not hold."""
        return self.failed - self.critical

    @property
    def succeeded(self) -> bool:
        """Whether every critical rule holds."""
        return not self.critical
