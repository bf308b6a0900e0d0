"""What earlier validations found, and the bars that show it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from expectations.ranges import read_state
from expectations.results import TableResult, ValidationResult
from spark_jobs.contracts.files import json_bytes
from spark_jobs.contracts.lake import REPORTS, Lake

KEPT_RUNS = 20
"""Validations whose pages and totals are kept."""
_HISTORY = f"{REPORTS}/history.json"


def remember(lake: Lake, result: ValidationResult, validated_at: datetime) -> list[dict[str, Any]]:
    """Adds ``result`` to the history of ``lake`` and gives all of it, the oldest first.

    An entry has ``at``, the counts ``passed``, ``warnings``, ``critical`` and ``rows``, and by name of a table in
    ``tables`` the same counts; entries of older versions have none.
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


def last_validation(lake: Lake) -> dict[str, Any] | None:
    """The newest entry of the history of ``lake``, as :func:`remember` gives it; None if it was never validated.

    Raises:
        LakeError: the history is damaged.
    """
    history = read_state(lake, _HISTORY).get("validations", [])
    return history[-1] if history else None


@dataclass(frozen=True)
class Chart:
    """Bars of a history, one for each validation, in a box of ``width`` by ``height`` px."""

    width: int
    height: int
    bars: tuple[dict[str, Any], ...]


def chart(history: Sequence[dict[str, Any]], width: int, height: int, *, table: str | None = None) -> Chart:
    """Stacked bars: failed above passed, broken rules drawn high enough to be seen.

    Args:
        history: as :func:`remember` gives it.
        width: of all, in px; there is room for as many bars as are kept.
        height: of all, in px.
        table: whose bars; by default those of all tables together.
    """
    step = width / KEPT_RUNS
    return Chart(
        width,
        height,
        tuple(
            {"x": round(place * step, 1), "width": round(step * 0.8, 1), **_bar(entry, height, table)}
            for place, entry in enumerate(history)
        ),
    )


def _bar(entry: dict[str, Any], height: int, table: str | None) -> dict[str, Any]:
    counts = entry if table is None else entry.get("tables", {}).get(table)
    failed = counts["warnings"] + counts["critical"] if counts else 0
    total = counts["passed"] + failed if counts else 0
    seen = height / 12
    return {
        "failed_height": round(max(height * failed / total, seen), 1) if failed else 0,
        "height": height if total else round(seen, 1),
        "kind": "critical" if counts and counts["critical"] else "warning",
        "told": f"{entry['at']}: {_told(counts)}" if total else f"{entry['at']}: nothing was checked",
        "is_empty": not total,
    }


def _told(counts: dict[str, int]) -> str:
    return (
        f"{counts['passed']} met, {counts['critical']} broken, {counts['warnings']} warnings, {counts['rows']:,} rows"
    )


def _counts(table: TableResult) -> dict[str, int]:
    return {
        "passed": table.passed,
        "warnings": len(table.failed) - table.critical,
        "critical": table.critical,
        "rows": table.rows,
    }
