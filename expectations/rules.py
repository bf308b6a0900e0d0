"""Rules as data: each states once what should hold, how serious a breach is, and why it matters.

Each rule yields both the Great Expectations check (``expectations.engine``) and the SQL predicate that finds the rows
that break it (``expectations.quarantine``), so the two cannot drift apart. Like Great Expectations, every rule except
``not_null`` ignores nulls. Rule modules never import Great Expectations: that import takes seconds.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How serious a broken rule is: ``critical`` fails the validation, ``warning`` is only reported."""

    CRITICAL = "critical"
    WARNING = "warning"


class RuleKind(StrEnum):
    """The property of a column that a rule checks."""

    NOT_NULL = "not_null"
    IN_SET = "in_set"
    BETWEEN = "between"
    LENGTH_BETWEEN = "length_between"


@dataclass(frozen=True)
class Rule:
    """One rule about the rows of a table.

    Attributes:
        name: Unique within its suite.
        kind: What to check about ``column``.
        column: A column of the table, or one added by the suite's ``prepare``.
        reason: One sentence saying what should hold.
        when: SQL predicate that selects the rows the rule covers; None for all rows.
        values: The values ``IN_SET`` allows.
        minimum: The least value or length allowed; None for no bound.
        maximum: The greatest value or length allowed; None for no bound.
        mostly: The share of rows that must satisfy the rule, 0 to 1.
        severity: How serious a breach is.
    """

    name: str
    kind: RuleKind
    column: str
    reason: str
    when: str | None = None
    values: tuple[str, ...] = ()
    minimum: int | None = None
    maximum: int | None = None
    mostly: float = 1.0
    severity: Severity = Severity.CRITICAL

    @property
    def keeps_rows(self) -> bool:
        """Whether a row that breaks the rule is wrong in itself and so worth storing; false for rules about a share."""
        return self.mostly == 1.0

    @property
    def subject(self) -> str:
        """The name of the column computed by ``subject_sql``: it says what the rule checks."""
        if not self.when:
            return self.column
        return f"{'presence of ' if self.kind is RuleKind.NOT_NULL else ''}{self.column}, where {self.when}"

    @property
    def subject_sql(self) -> str:
        """SQL of the column to check: ``column``, replaced by a passing value in rows the rule does not cover.

        This way every rule of a suite covers all rows, and Spark evaluates them in one pass; with Great Expectations'
        own row conditions each condition would cost extra passes.
        """
        if not self.when:
            return self.column
        if self.kind is RuleKind.NOT_NULL:
            return f"CASE WHEN coalesce({self.when}, false) AND {self.column} IS NULL THEN NULL ELSE true END"
        return f"CASE WHEN {self.when} THEN {self.column} END"

    @property
    def violation(self) -> str:
        """SQL predicate for the rows that break the rule; never null."""
        breach = self._breach()
        return f"coalesce(({self.when}) AND {breach}, false)" if self.when else f"coalesce({breach}, false)"

    def _breach(self) -> str:
        match self.kind:
            case RuleKind.NOT_NULL:
                return f"{self.column} IS NULL"
            case RuleKind.IN_SET:
                return f"{self.column} NOT IN ({', '.join(map(sql_text, self.values))})"
            case RuleKind.BETWEEN:
                return self._outside(self.column)
            case RuleKind.LENGTH_BETWEEN:
                return self._outside(f"char_length({self.column})")

    def _outside(self, operand: str) -> str:
        bounds = [f"{operand} < {self.minimum}"] if self.minimum is not None else []
        bounds += [f"{operand} > {self.maximum}"] if self.maximum is not None else []
        return f"({' OR '.join(bounds)})"


def sql_text(value: str) -> str:
    """``value`` as a SQL string literal."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def not_null(column: str, reason: str, when: str | None = None, severity: Severity = Severity.CRITICAL) -> Rule:
    """``column`` is not null."""
    return Rule(f"{column}_not_null", RuleKind.NOT_NULL, column, reason, when, severity=severity)


def in_set(column: str, values: Iterable[str], reason: str, when: str | None = None) -> Rule:
    """``column`` is one of ``values``."""
    return Rule(f"{column}_in_set", RuleKind.IN_SET, column, reason, when, tuple(values))


def length(column: str, minimum: int, maximum: int, reason: str, when: str | None = None) -> Rule:
    """``column`` has ``minimum`` to ``maximum`` characters."""
    return Rule(f"{column}_length", RuleKind.LENGTH_BETWEEN, column, reason, when, minimum=minimum, maximum=maximum)


def between(
    name: str,
    column: str,
    reason: str,
    *,
    minimum: int | None = None,
    maximum: int | None = None,
    when: str | None = None,
    severity: Severity = Severity.CRITICAL,
) -> Rule:
    """``column`` lies within the bounds, both included."""
    if minimum is None and maximum is None:
        raise ValueError(f"rule {name!r} has no bounds and could never fail; give it a minimum or a maximum")
    return Rule(name, RuleKind.BETWEEN, column, reason, when, minimum=minimum, maximum=maximum, severity=severity)


def zero(name: str, column: str, reason: str, when: str | None = None) -> Rule:
    """``column``, a number of faults or a difference, is 0."""
    return between(name, column, reason, minimum=0, maximum=0, when=when)


def unique(name: str, column: str, reason: str, when: str | None = None) -> Rule:
    """``column``, a number of occurrences, is at most 1."""
    return between(name, column, reason, maximum=1, when=when)
