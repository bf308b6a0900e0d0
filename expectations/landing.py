"""The landing page of the reports: verdict, tables, failures, ledger and history on one self-contained page."""

import os
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from expectations.counts import read_ledger
from expectations.ranges import read_state
from expectations.results import ValidationResult
from spark_jobs.contracts.lake import Lake
from spark_jobs.contracts.ledger import Ledger
from spark_jobs.runtime.whole_files import write_json, write_text

KEPT_RUNS = 20
"""Validations whose pages and totals are kept."""

_CHART_WIDTH, _CHART_HEIGHT = 420, 72


def write_landing_page(lake: Lake, result: ValidationResult, validated_at: datetime) -> None:
    """Write ``index.html`` of the lake's reports, add to their history, and drop what is too old."""
    history = _remember(lake, result, validated_at)
    ledger = read_ledger(lake)
    page = _template().render(
        result=result,
        lake=lake,
        validated_at=validated_at.astimezone(UTC),
        ledger=ledger,
        funnel=_funnel(ledger) if ledger else [],
        history=history,
        bars=_bars(history),
        chart=(_CHART_WIDTH, _CHART_HEIGHT),
        link=lambda path: os.path.relpath(path, lake.reports),
    )
    write_text(result.report, page)
    _drop_old_pages(lake.reports / "data_docs")


def _template() -> Any:
    environment = Environment(
        loader=PackageLoader("expectations", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = lambda value: f"{value:,}"
    return environment.get_template("index.html.j2")


def _remember(lake: Lake, result: ValidationResult, validated_at: datetime) -> list[dict[str, Any]]:
    file = lake.reports / "history.json"
    entry = {
        "at": validated_at.astimezone(UTC).isoformat(timespec="seconds"),
        "passed": result.passed,
        "warnings": result.warnings,
        "critical": result.critical,
        "rows": sum(table.rows for table in result.tables if table.range),
    }
    history = [*read_state(file).get("validations", []), entry][-KEPT_RUNS:]
    write_json(file, {"validations": history})
    return history


def _funnel(ledger: Ledger) -> list[dict[str, Any]]:
    """The ledger's steps as bars; a step's rest is shown beside it."""
    lost = [("duplicate", ledger.duplicates), ("late", ledger.late)]
    steps: Sequence[tuple[str, int, list[tuple[str, int]]]] = (
        ("received", ledger.received, []),
        ("ok", ledger.ok, sorted(ledger.quarantined.items(), key=lambda item: -item[1])),
        ("kept", ledger.kept, lost),
    )
    return [
        {
            "name": name,
            "count": count,
            "percent": 100 * count / ledger.received if ledger.received else 0,
            "rest": [{"name": what, "count": rows} for what, rows in rest if rows],
        }
        for name, count, rest in steps
    ]


def _bars(history: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """A stacked bar for each validation: failed above passed, broken rules drawn at least 6 px high to be seen."""
    step = _CHART_WIDTH / KEPT_RUNS
    bars = []
    for place, entry in enumerate(history):
        failed = entry["warnings"] + entry["critical"]
        total = max(entry["passed"] + failed, 1)
        height = max(_CHART_HEIGHT * failed / total, 6) if failed else 0
        bars.append(
            {
                "x": round(place * step, 1),
                "width": round(step - 4, 1),
                "failed_height": round(height, 1),
                "kind": "critical" if entry["critical"] else "warning",
                "entry": entry,
            }
        )
    return bars


def _drop_old_pages(docs: Path) -> None:
    # Great Expectations copies pictures and fonts that no page of ours shows.
    shutil.rmtree(docs / "static", ignore_errors=True)
    for suite in (docs / "validations").glob("*"):
        runs = sorted(suite.glob("*/*"), key=lambda run: run.name)
        for run in runs[:-KEPT_RUNS]:
            shutil.rmtree(run)
