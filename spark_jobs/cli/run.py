"""``adloom run``: progress bars while it runs, then the ledger as a table."""

import os
import threading
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from spark_jobs.cli.drain import print_cost
from spark_jobs.cli.ledger import print_account
from spark_jobs.cli.opening import session
from spark_jobs.cli.options import ConfigOption, LakeOption
from spark_jobs.cli.terminal import terminal
from spark_jobs.config.encoding import RecordFormat
from spark_jobs.config.sections import S3Settings
from spark_jobs.config.settings import load_settings
from spark_jobs.errors import SourceError
from spark_jobs.lake.open import check_store, open_lake
from spark_jobs.queries.jobs import jobs_of_run
from spark_jobs.queries.registry import QUERIES_OF_JOB

if TYPE_CHECKING:
    from spark_jobs.ingest.input_files import FoundFile
    from spark_jobs.spark.open_lake import OpenLake
    from spark_jobs.streams.bounded_run import RunResult
    from spark_jobs.streams.progress import ProgressFiles

app = typer.Typer()


_CHUNK = 1 << 20
_HAVE_LINES = (RecordFormat.JSON, RecordFormat.CSV)


@app.command(epilog="Example:  adloom run --source events --lake lake --drain")
def run(
    location: LakeOption,
    source: Annotated[
        str | None,
        typer.Option(
            help="Folder of files, or s3://bucket/prefix: JSON (.jsonl, .json, compressed or not), or as the "
            "sources in the settings say. Default: the folders that they name.",
            metavar="DIR",
        ),
    ] = None,
    drain: Annotated[
        bool, typer.Option("--drain", help="At the end, close every open impression, click and session.")
    ] = False,
    measure: Annotated[bool, typer.Option(help="Also run campaign_stats, moving_average and user_status.")] = True,
    config: ConfigOption = None,
) -> None:
    """Process all new files from raw records to gold tables, then balance the ledger.

    Without --drain, whatever is still open stays open and the next run on the same lake continues from there. If a run
    was killed, run it again.
    """
    from spark_jobs.ingest.input_files import files_of

    console, settings = terminal(), load_settings(config, os.environ)
    lake = open_lake(location, settings.s3)
    files = files_of(settings, source)
    if not files:
        raise SourceError(
            "nothing to read: give --source DIR, or set the path of a source; `adloom job deduplicate` reads topics"
        )
    check_store(lake)
    with session(console, settings, lake, files) as opened:
        result = run_with_bars(console, opened, source, drain=drain, measure=measure)
    print_account(console, result.ledger, lake.shown())
    if result.drained_to:
        print_cost(console, settings, result.drained_to)
    console.print(f"tables in {lake.shown()}; next: adloom validate --lake {location}", soft_wrap=True)


def run_with_bars(
    console: Console, lake: "OpenLake", source: str | Path | None, *, drain: bool, measure: bool = True
) -> "RunResult":
    """:func:`spark_jobs.streams.bounded_run.run` with a progress bar for each query."""
    from expectations.contract import contract_of
    from spark_jobs.ingest.input_files import files_of
    from spark_jobs.streams.bounded_run import run as run_queries

    columns = (SpinnerColumn(), TextColumn("{task.description:14}"), BarColumn(), TextColumn("{task.fields[counts]}"))
    with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
        queries = [query for job in jobs_of_run(measure=measure) for query in QUERIES_OF_JOB[job]]
        bars = _Bars(progress, _RecordCount(files_of(lake.settings, source), lake.settings.s3), queries)
        result = run_queries(
            lake,
            source,
            drain=drain,
            measure=measure,
            contract=contract_of(lake.settings),
            on_progress=bars.update,
        )
        bars.finish()
    return result


class _RecordCount:
    """The number of lines in files, counted in the background; unknown if there are files without lines."""

    def __init__(self, files: "Sequence[FoundFile]", s3: S3Settings) -> None:
        self.total: int | None = None
        self._files, self._s3 = files, s3
        if all(file.of.reader.encoding.format in _HAVE_LINES for file in files):
            threading.Thread(target=self._count, daemon=True).start()

    def _count(self) -> None:
        from spark_jobs.formats.text_lines import DAMAGE, open_content
        from spark_jobs.ingest.input_files import input_file

        total = 0
        for file in self._files:
            try:
                with closing(
                    open_content(input_file(file.location, self._s3), file.of.reader.encoding.charset)
                ) as text:
                    while chunk := text.read(_CHUNK):
                        total += chunk.count(b"\n")
            except (*DAMAGE, OSError):
                return  # ingest reads the file too, and reports what is wrong with it
        self.total = total


@dataclass
class _Bars:
    progress: Progress
    records: _RecordCount
    queries: Sequence[str]
    tasks: dict[str, TaskID] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.tasks = {query: self.progress.add_task(query, total=None, counts="") for query in self.queries}

    def update(self, done: "ProgressFiles") -> None:
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
