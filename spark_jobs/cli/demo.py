"""``adloom demo``: generates, runs, validates and reports a day of events."""

import os
import shlex
import shutil
from pathlib import Path
from typing import Annotated

import typer

from spark_jobs.cli.generate import generate_events
from spark_jobs.cli.ledger import print_account
from spark_jobs.cli.opening import session
from spark_jobs.cli.report import print_overview, write_with_status
from spark_jobs.cli.run import run_with_bars
from spark_jobs.cli.sql import query_lake
from spark_jobs.cli.terminal import terminal
from spark_jobs.cli.validate import print_validation, validate_with_status
from spark_jobs.config.choices import FileOrder, RowFormat
from spark_jobs.config.settings import Settings, load_settings
from spark_jobs.errors import SettingsError
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.lake.as_of import AsOf
from spark_jobs.lake.open import open_lake

app = typer.Typer()


_MARK = ".adloom-demo"
_FILES = 8
_QUESTION = "select campaign_id, impressions, clicks, ctr, cost_micros from daily_campaigns order by 2 desc limit 3"
"""The question somebody would ask first."""


@app.command(epilog="Example:  adloom demo --out demo --events 100000")
def demo(
    out: Annotated[
        Path, typer.Option(help="Folder for the events and the lake; replaced if it exists.", metavar="DIR")
    ] = Path("demo"),
    events: Annotated[int, typer.Option(help="Valid events to generate.", min=1, metavar="N")] = 100_000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same tables.", metavar="S")] = 1,
) -> None:
    """Try adloom: generate a day of events, run the jobs, validate the tables and write the report."""
    from spark_jobs.ingest.input_files import files_of

    console = terminal()
    _clear(out)
    generate_events(GeneratorSpec(events=events, seed=seed, files=_FILES, late=0.004), out / "events")
    settings, lake = _file_by_file(load_settings(None, os.environ)), open_lake(str(out / "lake"))
    with session(console, settings, lake, files_of(settings, out / "events")) as opened:
        result = run_with_bars(console, opened, out / "events", drain=True)
        overview = write_with_status(console, opened, is_validated_next=True)
        validation = validate_with_status(console, opened, whole=True)
    print_account(console, result.ledger, lake.shown())
    print_validation(console, lake, validation)
    print_overview(console, lake, overview)
    console.print(f"\nadloom sql --lake {lake.shown()} {shlex.quote(_QUESTION)}", style="bold", soft_wrap=True)
    query_lake(_QUESTION, str(lake.path), as_of=AsOf(), row_format=RowFormat.TABLE, output=None, config=None)
    if not validation.succeeded:
        raise typer.Exit(1)


def _file_by_file(settings: Settings) -> Settings:
    """``settings`` with one batch per file, as if files arrived one by one; otherwise nothing would ever be late."""
    one_by_one = {"max_bytes_per_batch": 1, "file_order": FileOrder.MODIFICATION_TIME}
    return settings.model_copy(update={"ingest": settings.ingest.model_copy(update=one_by_one)})


def _clear(out: Path) -> None:
    if out.exists() and not (out / _MARK).is_file():
        raise SettingsError(f"{out} exists and was not created by a demo; choose another --out, or move it away")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    (out / _MARK).touch()
