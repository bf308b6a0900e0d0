"""The history of validations: what each of the latest ones found."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from expectations.ranges import read_state
from expectations.results import TableResult, ValidationResult
from spark_jobs.contract.validation import VALIDATIONS, ValidatedTable, Validation, validation_key
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.records import write_record
from spark_jobs.lake.store.files import json_bytes
from spark_jobs.places import REPORTS

KEPT_RUNS = 20
"""How many validations keep their pages, totals and results."""
_HISTORY = f"{REPORTS}/history.json"


def remember(lake: Lake, result: ValidationResult, validated_at: datetime) -> list[dict[str, Any]]:
    """Adds ``result`` to the history of ``lake`` and returns all of it, the oldest first.

    An entry has ``at`` (ISO), the counts ``passed``, ``warnings``, ``critical`` and ``rows``, and in ``tables`` the
    same counts by table name. Entries written by older versions lack ``tables``.
    """
    entry = {
        "at": validated_at.astimezone(UTC).isoformat(timespec="seconds"),
        "passed": result.passed,
        "warnings": result.warnings,
        "critical": result.critical,
        "rows": sum(table.rows for table in result.tables if table.range),
        "tables": {table.table: _counts(table) for table in result.tables},
    }
    history = [*read_state(lake, _HISTORY).get("validations", []), entry][-KEPT_RUNS:]
    lake.files.write(_HISTORY, json_bytes({"validations": history}))
    return history


def keep(lake: Lake, result: ValidationResult, validated_at: datetime) -> None:
    """Writes what ``result`` says of each rule to the reports of ``lake``, and drops results that are too old."""
    looked_at = {
        found.table: ValidatedTable(version=found.range.last, rows=found.rows, rules=found.rules)
        for found in result.tables
        if found.range
    }
    # A table that is missing has no range either, and no rules.
    together = tuple(rule for found in result.tables if not found.range for rule in found.rules)
    validation = Validation(at=validated_at, tables=looked_at, together=together)
    write_record(lake, validation_key(validated_at), validation, indent=None)
    lake.files.delete(f"{VALIDATIONS}/{name}" for name in lake.files.names(VALIDATIONS)[:-KEPT_RUNS])


def last_validation(lake: Lake) -> dict[str, Any] | None:
    """The newest entry of the history of ``lake``, as :func:`remember` returns it; None if it was never validated.

    Raises:
        LakeError: the history is damaged.
    """
    history = read_state(lake, _HISTORY).get("validations", [])
    return history[-1] if history else None


def counts_of(history: Sequence[Mapping[str, Any]], table: str) -> list[dict[str, Any]]:
    """The entries of ``history`` for one table: ``at`` and its counts, all 0 where it was not validated."""
    nothing = {"passed": 0, "warnings": 0, "critical": 0, "rows": 0}
    return [{"at": entry["at"], **entry.get("tables", {}).get(table, nothing)} for entry in history]


def _counts(table: TableResult) -> dict[str, int]:
    return {
        "passed": table.passed,
        "warnings": len(table.failed) - table.critical,
        "critical": table.critical,
        "rows": table.rows,
    }
