"""The landing page of the reports: verdict, tables, failures, ledger and history on one self-contained page."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from expectations import charts
from expectations.days.figures import DaysFigures
from expectations.days.page import days_part
from expectations.history import KEPT_RUNS, counts_of, remember
from expectations.ledger import LedgerPart, ledger_part
from expectations.rejected_records.figures import RejectedFigures
from expectations.rejected_records.page import rejected_part
from expectations.replayed.latest import latest_replays
from expectations.restated.figures import RestatedFigures
from expectations.restated.page import restated_part
from expectations.results import ValidationResult
from expectations.templates import load_template
from spark_jobs.lake.layout import Lake
from spark_jobs.places import OVERVIEW, REPORTS

DATA_DOCS = f"{REPORTS}/data_docs"
_HISTORY_SIZE, _TABLE_HISTORY_SIZE, _FUNNEL_WIDTH = (420, 72), (200, 26), 560


def write_landing_page(
    lake: Lake,
    result: ValidationResult,
    validated_at: datetime,
    rejected: RejectedFigures | None = None,
    restated: RestatedFigures | None = None,
    days: DaysFigures | None = None,
) -> None:
    """Writes ``index.html`` of the lake's reports, adds to their history, and drops pages that are too old.

    ``rejected`` are the records that did not fit; None if there is no table of records. ``restated`` is what repairs
    changed; None if there was none. ``days`` says when days are done; None if nobody has asked yet.
    """
    history = remember(lake, result, validated_at)
    ledger = ledger_part(lake)
    page = load_template("index.html.j2").render(
        has_overview=lake.files.read(OVERVIEW) is not None,
        result=result,
        lake=lake,
        validated_at=validated_at.astimezone(UTC),
        funnel=_funnel(ledger),
        ledger=ledger,
        rejected=rejected_part(rejected),
        restated=restated_part(restated),
        days=days_part(days),
        replays=latest_replays(lake),
        history=history,
        history_chart=_history_chart(history, _HISTORY_SIZE),
        table_charts={
            found.table: _history_chart(counts_of(history, found.table), _TABLE_HISTORY_SIZE) for found in result.tables
        },
        link=lambda key: key.removeprefix(f"{REPORTS}/"),
    )
    lake.files.write(result.report, page.encode())
    _drop_old_pages(lake)


def publish_pages(lake: Lake, docs: Path) -> dict[str, str]:
    """Copies the Data Docs in the folder ``docs`` to the lake's reports.

    Returns:
        The key of each suite's page, by name of the suite.
    """
    pages = {}
    # Not their images and fonts: our pages use none.
    for file in (*docs.glob("expectations/**/*.html"), *docs.glob("validations/**/*.html")):
        place = file.relative_to(docs)
        key = f"{DATA_DOCS}/{place.as_posix()}"
        lake.files.write(key, file.read_bytes())
        if place.parts[0] == "validations":
            pages[place.parts[1]] = key
    return pages


def _history_chart(entries: Sequence[Mapping[str, Any]], size: tuple[int, int]) -> str:
    return charts.svg(charts.validations(entries, KEPT_RUNS, size))


def _funnel(ledger: LedgerPart | None) -> str:
    """The steps of the ledger as a chart; empty without records."""
    if ledger is None:
        return ""
    steps = [("received", ledger.last.received), ("ok", ledger.last.ok), ("kept", ledger.last.kept)]
    chart = charts.funnel(steps, _FUNNEL_WIDTH)
    return "" if chart is None else charts.svg(chart)


def _drop_old_pages(lake: Lake) -> None:
    pages = [file.key for file in lake.files.walk(f"{DATA_DOCS}/validations")]
    runs = sorted({_time_of(page) for page in pages})
    old = set(runs[:-KEPT_RUNS])
    lake.files.delete(page for page in pages if _time_of(page) in old)


def _time_of(page: str) -> str:
    """The run time in a page's key: ``…/validations/<suite>/<run name>/<run time>/<batch>.html``."""
    return page.split("/")[-2]
