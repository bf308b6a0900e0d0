"""``adloom run``: progress bars while it runs, then the ledger as a table."""

import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from expectations.contract import contract_of
from spark_jobs.console.terminal import terminal, utc
from spark_jobs.contracts.durations import format_duration
from spark_jobs.contracts.encoding import RecordFormat, format_of_file
from spark_jobs.contracts.errors import SourceError
from spark_jobs.contracts.jobs import MEASURE_JOB, jobs_of_run
from spark_jobs.contracts.ledger import Ledger
from spark_jobs.contracts.settings import Settings, load_settings
from spark_jobs.contracts.tables import BRONZE_EVENTS
from spark_jobs.jobs.drain import drain_lead, late_up_to
from spark_jobs.jobs.run import RunResult, run
from spark_jobs.lake.layout import Lake
from spark_jobs.queries import QUERIES_OF_JOB
from spark_jobs.runtime.failures import naming_the_cause
from spark_jobs.runtime.java import Lifetime
from spark_jobs.runtime.lakes import check_store, open_existing, open_lake
from spark_jobs.runtime.logs import spark_log
from spark_jobs.runtime.progress import ProgressFiles
from spark_jobs.runtime.session import start_session, stop_session
from spark_jobs.sources.arriving import files_of
from spark_jobs.sources.files import open_file

_CHUNK = 1 << 20
_HAVE_LINES = (RecordFormat.JSON, RecordFormat.CSV)
_COMPRESSED = (".gz", ".parquet")
_DEFLATED = 8
"""Approximate compression ratio of event files."""
_DEFLATED_IN_BRONZE = 3
"""The same for bronze, which holds records and their fields."""
_SHORT_BYTES = 16 << 20
"""About 100,000 events."""


def run_lake(source: Path | None, location: str, *, drain: bool, measure: bool, config: Path | None) -> None:
    """Runs ``source`` into the lake at ``location`` and prints the ledger."""
    console, settings = terminal(), load_settings(config, os.environ)
    lake = open_lake(location, settings.s3)
    if not files_of(settings, source):
        raise SourceError(
            "nothing to read: give --source DIR, or set the path of a source; `adloom job deduplicate` reads topics"
        )
    check_store(lake)
    with session(console, settings, lake, files_of(settings, source)) as spark:
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
def session(console: Console, settings: Settings, lake: Lake, files: Iterable[Path] = ()) -> Iterator[SparkSession]:
    """A Spark session for the lake and the ``files`` that it will read, tuned for their size; stopped on exit.

    Raises:
        QueryFailedError: Spark failed inside the block.
    """
    with console.status("starting Spark …"):
        log_file, lifetime = spark_log(lake, settings.job), lifetime_of(lake, files)
        spark = start_session(settings, lake=lake, log_file=log_file, lifetime=lifetime)
    try:
        with naming_the_cause(list):
            yield spark
    finally:
        stop_session(spark)


def lifetime_of(lake: Lake, files: Iterable[Path] = ()) -> Lifetime:
    """The expected duration of work on ``lake`` that reads ``files``, from their size and that of bronze."""
    size = sum(file.stat().st_size * (_DEFLATED if file.suffix in _COMPRESSED else 1) for file in files)
    for file in lake.files.walk(BRONZE_EVENTS.path):
        size += file.bytes * _DEFLATED_IN_BRONZE
        if size >= _SHORT_BYTES:
            return Lifetime.RUN  # a large table has more files than are worth listing
    return Lifetime.SHORT if size < _SHORT_BYTES else Lifetime.RUN


def run_with_bars(
    console: Console,
    spark: SparkSession,
    settings: Settings,
    lake: Lake,
    source: Path | None,
    *,
    drain: bool,
    measure: bool = True,
) -> RunResult:
    """:func:`spark_jobs.jobs.run.run` with a progress bar for each query."""
    columns = (SpinnerColumn(), TextColumn("{task.description:14}"), BarColumn(), TextColumn("{task.fields[counts]}"))
    with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
        queries = [query for job in jobs_of_run(measure=measure) for query in QUERIES_OF_JOB[job]]
        bars = _Bars(progress, _RecordCount(files_of(settings, source)), queries)
        result = run(
            spark,
            settings,
            lake,
            source,
            drain=drain,
            measure=measure,
            contract=contract_of(settings),
            on_progress=bars.update,
        )
        bars.finish()
    return result


class _RecordCount:
    """The number of lines in files, counted in the background; unknown if there are files without lines."""

    def __init__(self, files: Sequence[Path]) -> None:
        self.total: int | None = None
        self._files = files
        if all(format_of_file(file.name) in _HAVE_LINES for file in files):
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
    if ledger.requeued:
        add("    requeued", ledger.requeued, "a part of ok: were in quarantine, and fit since", style="dim")
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
    for name, count, meaning in (
        ("events late for their session", ledger.session_late, "kept in silver, not in sessions"),
        ("events in open sessions", ledger.session_open, "the next run continues"),
        ("events of the initial state", ledger.session_initial, "in sessions, not in silver"),
        ("events without a user", ledger.session_userless, "in silver, not in sessions"),
        ("conversions", ledger.conversions, "in silver, not in sessions"),
    ):
        if count:
            add(f"  {name}", count, meaning)
    console.print()
    console.print(table)
