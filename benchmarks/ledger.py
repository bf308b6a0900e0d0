"""The cost of the ledger, compared with that of the jobs: `make bench-ledger`."""

import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.common import ADLOOM
from benchmarks.measure import cpu_seconds
from spark_jobs.generator.generate import generate
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.lake.open import open_lake
from spark_jobs.ledger.ledger_files import last_ledger

_SAMPLE_S = 0.2
_EVENTS_PER_FILE = 25_000
"""So that a run has batches enough for updates between them."""


def main(
    events: Annotated[int, typer.Option(help="Good events to generate.")] = 500_000,
    every: Annotated[float, typer.Option(help="Seconds between two updates; the DAG makes one every 600 s.")] = 600,
    out: Annotated[Path, typer.Option(help="Folder for input and lake; replaces its ledger-*.")] = Path("build"),
    measure: Annotated[bool, typer.Option(help="Also run the job `measure`.")] = False,
) -> None:
    """Run the jobs over generated events, batch by batch, with the ledger alongside; compare their CPU seconds."""
    console, work = Console(), out / f"ledger-{events}"
    shutil.rmtree(work, ignore_errors=True)
    files = max(1, events // _EVENTS_PER_FILE)
    records = generate(GeneratorSpec(events=events, seed=1, files=files, late=0.002), work / "events").records
    lake = str(work / "lake")
    run = [*ADLOOM, "run", "--source", str(work / "events"), "--lake", lake, "--drain"]
    # A batch a file, as jobs have them that follow a stream.
    environment = os.environ | {"ADLOOM_INGEST__MAX_BYTES_PER_BATCH": "1"}
    with (work / "run.txt").open("wb") as log, console.status("the jobs, with the ledger alongside"):
        jobs = subprocess.Popen(
            [*run, "--measure" if measure else "--no-measure"], stdout=log, stderr=subprocess.STDOUT, env=environment
        )
        spent, updates, due = 0.0, [], time.monotonic() + every
        while jobs.poll() is None:
            spent = max(spent, cpu_seconds(jobs.pid))
            if time.monotonic() >= due:
                updates += _update(lake)
                due = time.monotonic() + every
            time.sleep(_SAMPLE_S)
        if jobs.returncode:
            raise SystemExit(f"the run failed: see {work / 'run.txt'}")
        updates += _update(lake)
    _report(console, records, spent, updates)
    last = last_ledger(open_lake(lake))
    if last is None or not last.balances:
        raise SystemExit("the ledger does not balance: the figures are worth nothing")


def _update(lake: str) -> list[float]:
    """Updates the ledger; returns its CPU seconds, or nothing if there is no lake yet."""
    process = subprocess.Popen([*ADLOOM, "ledger", "--lake", lake], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return [] if process.returncode else [used.ru_utime + used.ru_stime]


def _report(console: Console, records: int, spent: float, updates: list[float]) -> None:
    table = Table(title=f"{records:,} records")
    for heading in ("", "CPU s", "µs a record", "of the jobs"):
        table.add_column(heading, justify="right" if heading else "left")
    table.add_row("jobs", f"{spent:.1f}", f"{spent / records * 1e6:.1f}", "")
    name = f"ledger, {len(updates)} update{'s' if len(updates) > 1 else ''}"
    used = sum(updates)
    table.add_row(name, f"{used:.2f}", f"{used / records * 1e6:.2f}", f"{used / spent:.1%}")
    console.print(table)


if __name__ == "__main__":
    typer.run(main)
