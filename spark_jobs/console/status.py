"""``adloom status``: what each query of a lake is doing."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pydantic import ValidationError
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from spark_jobs.console.run import existing_lake
from spark_jobs.contracts.durations import format_duration
from spark_jobs.contracts.jobs import JOB_OF_QUERY
from spark_jobs.contracts.lake import Lake
from spark_jobs.contracts.progress import QueryReport, QueryState

_REFRESH_S = 1.0
_STYLES = {QueryState.RUNNING: "green", QueryState.STOPPED: "dim", QueryState.FAILED: "bold red"}
_COLUMNS = ("job", "query", "state", "batch", "took", "rows/s", "rows", "watermark", "behind", "state rows", "late", "backlog")


def show_status(location: str, *, once: bool) -> None:
    """Prints the state of every query of the lake at ``location``, again each second unless ``once``.

    Raises:
        LakeError: there is no lake.
    """
    lake, console = existing_lake(location), Console()
    if once or not console.is_terminal:
        console.print(status_page(lake, datetime.now(UTC)))
        return
    with Live(console=console, auto_refresh=False) as live:
        while True:
            live.update(status_page(lake, datetime.now(UTC)), refresh=True)
            time.sleep(_REFRESH_S)


def status_page(lake: Lake, now: datetime) -> RenderableType:
    """The table of all queries, and below it the last error of each that has one."""
    reports = list(_reports(lake))
    table = Table(title=f"{lake.root} at {now:%Y-%m-%d %H:%M:%S} UTC", title_justify="left")
    for column in _COLUMNS:
        table.add_column(column, justify="left" if column in ("job", "query", "state", "watermark") else "right")
    for report in reports:
        table.add_row(*_cells(report, now))
    if not reports:
        return Text(f"no query has run on {lake.root} yet; start `adloom job deduplicate` or `adloom run`")
    errors = [Text(f"{report.query}: {report.last_error}", style="red") for report in reports if report.last_error]
    return Group(table, *errors)


def _reports(lake: Lake) -> Iterator[QueryReport]:
    for query, job in JOB_OF_QUERY.items():
        file: Path = lake.progress / job / f"{query}.json"
        try:
            yield QueryReport.model_validate_json(file.read_text(encoding="utf-8"))
        except (OSError, ValidationError):
            continue  # has not run, or was written by another version


def _cells(report: QueryReport, now: datetime) -> Iterator[RenderableType]:
    yield report.job
    yield Text(report.query, style="bold")
    yield _state(report, now)
    yield "" if report.batch_id is None else f"{report.batch_id:,}"
    yield f"{report.batch_ms / 1000:,.1f} s"
    yield f"{report.processed_rows_per_s:,.0f}"
    yield f"{report.total_input_rows:,}"
    yield f"{report.watermark:%Y-%m-%d %H:%M:%S}" if report.watermark else ""
    yield _behind(report, now)
    yield f"{report.state_rows:,}"
    yield Text(f"{report.late_rows:,}", style="yellow" if report.late_rows else "")
    yield _backlog(report)


def _state(report: QueryReport, now: datetime) -> Text:
    silence = now - report.updated_at
    told = f" {_rough(silence)} ago" if silence > timedelta(minutes=1) else ""
    return Text(report.state.value + told, style=_STYLES[report.state])


def _behind(report: QueryReport, now: datetime) -> str:
    return _rough(now - report.watermark) if report.watermark else ""


def _backlog(report: QueryReport) -> str:
    if report.backlog_records is not None:
        return f"{report.backlog_records:,} records"
    return "" if report.backlog_bytes is None else f"{report.backlog_bytes / 1e6:,.1f} MB"


def _rough(duration: timedelta) -> str:
    """``duration`` to the second, or to the minute from an hour on."""
    step = timedelta(minutes=1) if duration >= timedelta(hours=1) else timedelta(seconds=1)
    return format_duration(duration // step * step)
