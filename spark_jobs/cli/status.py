"""``adloom status``: the state of each query of a lake."""

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from spark_jobs.cli.options import ConfigOption, LakeOption
from spark_jobs.cli.terminal import terminal, utc
from spark_jobs.config.durations import format_duration
from spark_jobs.config.sections import S3Settings
from spark_jobs.config.settings import load_settings
from spark_jobs.errors import AdloomError
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_existing
from spark_jobs.queries.registry import JOB_OF_QUERY
from spark_jobs.streams.reports import QueryReport, QueryState, read_reports

app = typer.Typer()


_REFRESH_S = 1.0
_FILES_EVERY = 60
"""The refreshes from one look at the files to the next."""
_NAMED = 3
"""How many of the files that changed are named."""
_STYLES = {QueryState.RUNNING: "green", QueryState.STOPPED: "dim", QueryState.FAILED: "bold red"}
_TEXTS = ("query", "state", "seen", "behind")
_NUMBERS = ("batch", "rows/s", "in state", "late", "backlog")


@app.command(
    epilog="Example:  adloom status --lake lake   Ctrl-C ends it. Printed once if the output is not a terminal.",
)
def status(
    location: LakeOption,
    once: Annotated[bool, typer.Option("--once", help="Print the table once instead of refreshing it.")] = False,
    config: ConfigOption = None,
) -> None:
    """Show what each query of a lake is doing: rate, watermark, state, late rows, backlog and last error."""
    console, settings = terminal(), load_settings(config, os.environ)
    lake = open_existing(location, settings.s3)
    if once or not console.is_terminal:
        console.print(status_page(lake, datetime.now(UTC), warning_of_files(lake, settings.s3)))
        return
    with Live(console=console, auto_refresh=False) as live:
        for number in count():
            if number % _FILES_EVERY == 0:
                warning = warning_of_files(lake, settings.s3)
            live.update(status_page(lake, datetime.now(UTC), warning), refresh=True)
            time.sleep(_REFRESH_S)


def warning_of_files(lake: Lake, s3: S3Settings) -> str:
    """Which input files changed after they were read, and what to do; empty if none did."""
    from spark_jobs.ingest.changed_files import changed_files

    try:
        changed = changed_files(lake, s3)
    except (AdloomError, OSError) as error:
        return f"whether files changed after they were read is unknown: {error}"
    if not changed:
        return ""
    named = [f"{one.path} ({one.read:,} bytes then, {one.now:,} now)" for one in changed[:_NAMED]]
    more = f" and {len(changed) - _NAMED:,} more" if len(changed) > _NAMED else ""
    return (
        f"{len(changed):,} of the input files changed after they were read: {', '.join(named)}{more}. A file is read "
        "once, so what was added is not in the lake, and `adloom requeue` does not bring it in. Copy each file under "
        "another name: the events that were read already are dropped as duplicates. From now on write files elsewhere "
        "and move them in when they are complete, or give them a name that begins with . or _ until then"
    )


def status_page(lake: Lake, now: datetime, warning: str = "") -> RenderableType:
    """A table of all queries, followed by their last errors and a ``warning``."""
    reports = list(read_reports(lake, JOB_OF_QUERY))
    table = Table(
        title=f"{lake.shown()} at {utc(now)}",
        title_justify="left",
        caption="seen: last report; behind: watermark lag; late: dropped since the query started",
        caption_justify="left",
        box=SIMPLE_HEAD,
        # The box already separates columns by a space; more padding would overflow 80 columns.
        padding=0,
    )
    for heading in _TEXTS:
        table.add_column(heading, no_wrap=True)
    for heading in _NUMBERS:
        table.add_column(heading, justify="right", no_wrap=True)
    for report in reports:
        table.add_row(*_cells(report, now))
    if not reports:
        return Text(f"no query has run on {lake.root} yet; start `adloom job deduplicate` or `adloom run`")
    errors = [Text(f"{report.query}: {report.last_error}", style="red") for report in reports if report.last_error]
    return Group(table, *errors, *([Text(warning, style="yellow")] if warning else []))


def _cells(report: QueryReport, now: datetime) -> Iterator[RenderableType]:
    yield Text(report.query, style="bold")
    yield Text(report.state.value, style=_STYLES[report.state])
    yield f"{_rough(now - report.updated_at)}"
    yield _rough(now - report.watermark) if report.watermark else ""
    yield "" if report.batch_id is None else f"{report.batch_id:,}"
    yield f"{report.processed_rows_per_s:,.0f}"
    yield "uncounted" if report.state_rows is None else f"{report.state_rows:,}"
    yield Text(f"{report.late_rows:,}", style="yellow" if report.late_rows else "")
    yield _backlog(report)


def _backlog(report: QueryReport) -> str:
    if report.backlog is not None:
        unit = "commits" if report.backlog_records is None else "records"
        rest = f", gone in {_rough(report.caught_up_at - report.updated_at)}" if report.caught_up_at else ""
        return f"{report.backlog:,} {unit}{rest}"
    return "" if report.backlog_bytes is None else f"{report.backlog_bytes / 1e6:,.1f} MB"


def _rough(duration: timedelta) -> str:
    """``duration`` rounded down to its two largest units."""
    for limit, step in ((timedelta(days=1), timedelta(hours=1)), (timedelta(hours=1), timedelta(minutes=1))):
        if duration >= limit:
            return format_duration(duration // step * step)
    return format_duration(duration // timedelta(seconds=1) * timedelta(seconds=1))
