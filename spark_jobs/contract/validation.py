"""The findings of a validation, rule by rule: kept in the lake for whoever asks later."""

from datetime import UTC, datetime

from pydantic import BaseModel, ConfigDict

from spark_jobs.places import REPORTS

VALIDATIONS = f"{REPORTS}/validations"
"""Folder of the latest validations: a JSON file each, named after its time."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)


class RuleResult(_Frozen):
    """Whether a rule holds.

    Attributes:
        name: Unique within the rules of a table.
        kind: What it checks: ``not_null``, ``in_set``, ``between`` or ``length_between``.
        column: A column of the table, or a number that is computed for the rule.
        reason: One sentence saying what should hold.
        is_critical: Whether a breach fails the validation; otherwise it is a warning.
        mostly: The share of rows that must satisfy the rule.
        holds: Whether it holds.
        found: How many rows break it. For a rule about the tables together, the number checked; None if unknown.
    """

    name: str
    kind: str
    column: str
    reason: str
    is_critical: bool
    mostly: float
    holds: bool
    found: int | None


class ValidatedTable(_Frozen):
    """The findings of a validation in a table: its ``version``, the number of ``rows``; no rules if no row was new."""

    version: int
    rows: int
    rules: tuple[RuleResult, ...]


class Validation(_Frozen):
    """The results of the validation that began at ``at``: by name of the table, and of the tables ``together``."""

    at: datetime
    tables: dict[str, ValidatedTable]
    together: tuple[RuleResult, ...]


def validation_key(at: datetime) -> str:
    """Where the results of the validation that began at ``at`` are kept; keys sort by time."""
    return f"{VALIDATIONS}/{at.astimezone(UTC):%Y%m%dT%H%M%S.%fZ}.json"
