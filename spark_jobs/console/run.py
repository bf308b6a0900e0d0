"""``adloom run``: progress bars while it runs, then the ledger as a table."""

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from spark_jobs.console.terminal import terminal, utc
from spark_jobs.contracts.durations import format_duration
from spark_jobs.contracts.jobs import MEASURE_JOB, jobs_of_run
from spark_jobs.contracts.ledger import Ledger
from spark_jobs.contracts.settings import Settings, load_settings
from spark_jobs.jobs.drain import drain_lead, late_up_to
from spark_jobs.jobs.run import RunResult, run
from spark_jobs.lake.layout import Lake
from spark_jobs.queries import QUERIES_OF_JOB
from spark_jobs.runtime.failures import naming_the_cause
from spark_jobs.runtime.java import Lifetime
from spark_jobs.runtime.lakes import check_store, open_existing, open_lake
from spark_jobs.runtime.logs import spark_log
from spark_jobs.runtime.progress import ProgressFiles
from spark_jobs.runtime.session import start_session
from spark_jobs.sources.files import list_files, open_file

_CHUNK = 1 << 20
_DEFLATED = 8
"""Approximate compression ratio of event files."""
_SHORT_BYTES = 16 << 20
"""About 100,000 events."""


def run_lake(source: Path, location: str, *, drain: bool, measure: bool, config: Path | None) -> None:
    """Runs ``source`` into the lake at ``location`` and prints the ledger."""
    console, settings = terminal(), load_settings(config, os.environ)
    lake = open_lake(location, settings.s3)
    list_files(source)
    check_store(lake)
    with session(console, settings, lake, lifetime=lifetime_of(source)) as spark:
        result = run_with_bars(console, spark, settings, lake, source, drain=drain, measure=measure)
    print_ledger(console, result.ledger)
    if result.drained_to:
        _print_cost(console, settings, result.drained_to)
    console.print(f"tables in {lake.place()}; next: adloom validate --lake {location}", soft_wrap=True)


def drain_lake(location: str, *, config: Path | None) -> None:
    """Finishes what the jobs left unprocessed in the lake at ``location``, drains it, and prints the ledger."""
    console, settings = terminal(), load_settings(config, os.environ)
    lake = open_existing(location, settings.s3)
    console.print(
        f"A drain moves event time {format_duration(drain_lead(settings))} past the last event, to close everything "
        f"that is open. To stop running jobs without that, use `adloom stop --lake {location}`.",
    )
    with session(console, settings, lake) as spark, console.status("draining …"):
        # A drain does not start a job that never ran on this lake.
        has_measured = any(lake.versions(query) for query in QUERIES_OF_JOB[MEASURE_JOB])
        result = run(spark, settings, lake, None, drain=True, measure=has_measured)
    print_ledger(console, result.ledger)
    if result.drained_to:
        _print_cost(console, settings, result.drained_to)


def _print_cost(console: Console, settings: Settings, drained_to: datetime) -> None:
    """Prints which events are late from now on."""
    late = late_up_to(settings, drained_to)
    console.print(
        f"drained: event time is {utc(drained_to, 'milliseconds')}. Of the events that arrive from now on, those with "
        f"a time up to {utc(max(late.values()), 'milliseconds')} are late: silver keeps them, but gold lacks them:",
    )
    for table, time in late.items():
        console.print(f"  {table}: up to {utc(time, 'milliseconds')}")


@contextmanager
def session(
    console: Console, settings: Settings, lake: Lake, *, lifetime: Lifetime = Lifetime.RUN
) -> Iterator[SparkSession]:
    """A Spark session for the lake, tuned for ``lifetime``; stopped on exit.

    Raises:
        QueryFailedError: Spark failed inside the block.
    """
    with console.status("starting Spark …"):
        spark = start_session(settings, lake=lake, log_file=spark_log(lake, settings.job), lifetime=lifetime)
    try:
        with naming_the_cause(list):
            yield spark
    finally:
        spark.stop()


def lifetime_of(source: Path) -> Lifetime:
    """The expected duration of a run over ``source``, from the size of its files."""
    size = sum(file.stat().st_size * (_DEFLATED if file.suffix == ".gz" else 1) for file in list_files(source))
    return Lifetime.SHORT if size < _SHORT_BYTES else Lifetime.RUN


def run_with_bars(
    console: Console,
    spark: SparkSession,
    settings: Settings,
    lake: Lake,
    source: Path,
    *,
    drain: bool,
    measure: bool = True,
) -> RunResult:
    """:func:`spark_jobs.jobs.run.run` with a progress bar for each query."""
    columns = (SpinnerColumn(), TextColumn("{task.description:14}"), BarColumn(), TextColumn("{task.fields[counts]}"))
    with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
        queries = [query for job in jobs_of_run(measure=measure) for query in QUERIES_OF_JOB[job]]
        bars = _Bars(progress, _RecordCount(source), queries)
        result = run(spark, settings, lake, source, drain=drain, measure=measure, on_progress=bars.update)
        bars.finish()
    return result


class _RecordCount:
    """The number of lines in the files of a folder, counted in the background."""

    def __init__(self, source: Path) -> None:
        self.total: int | None = None
        self._files = list_files(source)
        threading.Thread(target=self._count, daemon=True).start()

    def _count(self) -> None:
        total = 0
        for file in self._files:
            try:
                with open_file(file) as lines:
                    while chunk := lines.read(_CHUNK):
                        total += chunk.count(b"\n")
            except (OSError, EOFError):
                return  # Spark reads the file too, and reports what is wrong with it
        self.total = total


@dataclass
class _Bars:
    progress: Progress
    records: _RecordCount
    queries: Sequence[str]
    tasks: dict[str, TaskID] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.tasks = {query: self.progress.add_task(query, total=None, counts="") for query in self.queries}

    def update(self, done: ProgressFiles) -> None:
        """Shows how much each query has read; every query but the first reads what the previous one wrote."""
        total = self.records.total
        for query, task in self.tasks.items():
            report = done.report(query)
            rows = report.total_rows if report else 0
            counts = f"{rows:,} rows" + (f", {report.state_rows:,} in state" if report and report.state_rows else "")
            self.progress.update(task, total=total, completed=min(rows, total) if total else rows, counts=counts)

    def finish(self) -> None:
        """Fills all bars: later queries read fewer rows than there are records."""
        for task in self.tasks.values():
            self.progress.update(task, total=1, completed=1)


def print_ledger(console: Console, ledger: Ledger) -> None:
    """Prints what happened to the records."""
    table = Table(title="Ledger", title_justify="left", show_header=False, box=None, padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(justify="right")
    table.add_column(style="dim")

    def add(name: str, count: int, remark: str = "", *, style: str = "") -> None:
        table.add_row(name, f"{count:,}", remark, style=style)

    add("received", ledger.received, "= ok + quarantined", style="bold")
    add("  quarantined", ledger.total_quarantined)
    for verdict, count in sorted(ledger.quarantined.items(), key=lambda item: (-item[1], item[0])):
        add(f"    {verdict}", count, style="dim")
    add("  ok", ledger.ok, "= kept + duplicates + late")
    add("    duplicates", ledger.duplicates)
    add("    late", ledger.late)
    add("    kept", ledger.kept, "each event once", style="bold")
    table.add_section()
    add("attributions", sum(ledger.attribution.values()), style="bold")
    for status, count in ledger.attribution.items():
        add(f"  {status}", count)
    if ledger.attribution_late:
        add("  late for the join", ledger.attribution_late, "kept in silver, not in attributions")
    if ledger.attribution_open:
        add("  still open", ledger.attribution_open, "the next run continues")
    add("sessions", sum(ledger.sessions.values()), style="bold")
    for ended_by, count in ledger.sessions.items():
        add(f"  ended by {ended_by}", count)
    if ledger.session_late:
        add("  events late for their session", ledger.session_late, "kept in silver, not in sessions")
    if ledger.session_open:
        add("  events in open sessions", ledger.session_open, "the next run continues")
    if ledger.session_initial:
        add("  events of the initial state", ledger.session_initial, "in sessions, not in silver")
    console.print()
    console.print(table)
