"""The landing page of the reports: verdict, tables, failures, ledger and history on one self-contained page."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from expectations.counts import read_ledger
from expectations.history import KEPT_RUNS, chart, remember
from expectations.results import ValidationResult
from expectations.templates import load_template
from spark_jobs.contracts.lake import OVERVIEW, REPORTS, Lake
from spark_jobs.contracts.ledger import Ledger

DATA_DOCS = f"{REPORTS}/data_docs"
_CHART = (420, 72)
_TABLE_CHART = (180, 24)


def write_landing_page(lake: Lake, result: ValidationResult, validated_at: datetime) -> None:
    """Write ``index.html`` of the lake's reports, add to their history, and drop what is too old."""
    history = remember(lake, result, validated_at)
    ledger = read_ledger(lake)
    page = load_template("index.html.j2").render(
        has_overview=lake.files.read(OVERVIEW) is not None,
        result=result,
        lake=lake,
        validated_at=validated_at.astimezone(UTC),
        ledger=ledger,
        funnel=_funnel(ledger) if ledger else [],
        history=history,
        chart=chart(history, *_CHART),
        table_charts={found.table: chart(history, *_TABLE_CHART, table=found.table) for found in result.tables},
        link=lambda key: key.removeprefix(f"{REPORTS}/"),
    )
    lake.files.write(result.report, page.encode())
    _drop_old_pages(lake)


def publish_pages(lake: Lake, docs: Path) -> dict[str, str]:
    """Put the Data Docs in the folder ``docs`` among the lake's reports.

    Returns:
        By suite, the key of its page.
    """
    pages = {}
    # Not its pictures and fonts, which no page of ours shows.
    for file in (*docs.glob("expectations/**/*.html"), *docs.glob("validations/**/*.html")):
        place = file.relative_to(docs)
        key = f"{DATA_DOCS}/{place.as_posix()}"
        lake.files.write(key, file.read_bytes())
        if place.parts[0] == "validations":
            pages[place.parts[1]] = key
    return pages


def _funnel(ledger: Ledger) -> list[dict[str, Any]]:
    """The ledger's steps as bars; a step's rest is shown beside it."""
    lost = [("duplicate", ledger.duplicates), ("late", ledger.late)]
    steps: tuple[tuple[str, int, list[tuple[str, int]]], ...] = (
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


def _drop_old_pages(lake: Lake) -> None:
    pages = [file.key for file in lake.files.walk(f"{DATA_DOCS}/validations")]
    runs = sorted({_time_of(page) for page in pages})
    old = set(runs[:-KEPT_RUNS])
    lake.files.delete(page for page in pages if _time_of(page) in old)


def _time_of(page: str) -> str:
    """When the run of a page was: ``…/validations/<suite>/<run name>/<run time>/<batch>.html``."""
    return page.split("/")[-2]
