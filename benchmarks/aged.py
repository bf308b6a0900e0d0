"""Commands, resets and starts of jobs on a lake with a year behind it, on MinIO: `make bench-aged`.

Each job starts once, with new records for it, and ends when it has written them. The job `measure` is new on this lake.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks.aged_lake import Age, make_aged
from benchmarks.common import ADLOOM, minio_in, print_costs, save_costs
from benchmarks.measure import Cost, run_measured
from spark_jobs.config.settings import Settings
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from spark_jobs.lake.store.objects import Objects
from spark_jobs.queries.registry import QUERIES, QUERIES_OF_JOB, queries_of
from spark_jobs.spark.java import Lifetime
from spark_jobs.spark.session import start_session
from tests.stack.flow import adloom

_ROOT = "s3a://aged/lake"
_COMMANDS: tuple[Sequence[str], ...] = (
    ("status", "--once"),
    ("doctor",),
    ("days",),
    ("days",),
    ("ledger", "--from-now"),
    ("ledger",),
    ("maintain",),
    ("repair",),
    ("repair",),
)
"""The first `days` looks at a year, the first `repair` at what has come; the second ones find nothing new."""


def main(
    commits: Annotated[int, typer.Option(help="Commits in the logs of bronze and silver.")] = Age.commits,
    days: Annotated[int, typer.Option(help="Days that rows cover.")] = Age.days,
    partitions: Annotated[int, typer.Option(help="Partitions of the topic in the notes of ingest.")] = Age.partitions,
    keep: Annotated[bool, typer.Option(help="Use the lake of the last time again, which takes long to make.")] = False,
    out: Annotated[Path, typer.Option(help="Folder for MinIO and results; replaced.")] = Path("build/bench-aged"),
) -> None:
    """Make an aged lake, and measure commands, resets and starts of jobs on it."""
    console = Console()
    age = replace(Age(), commits=commits, days=days, partitions=partitions)
    with minio_in(out, keep=keep) as settings:
        lake = open_lake(_ROOT, settings.s3)
        if not keep:
            _make(lake, Objects(_ROOT, settings.s3), age, out, console)
        costs: dict[str, Cost] = {}
        for name, cost in _measured(lake, out, console):
            costs[f"{name}, again" if name in costs else name] = cost
            save_costs(costs, out)
        print_costs(console, f"{days} days, {commits:,} commits, {partitions:,} partitions", costs)


def _make(lake: Lake, objects: Objects, age: Age, out: Path, console: Console) -> None:
    adloom("init", "--lake", lake.root)
    begin = time.monotonic()
    with console.status("a session …") as status:
        spark = start_session(Settings(), lake=None, lifetime=Lifetime.SERVICE)

        def say(what: str) -> None:
            status.update(f"{time.monotonic() - begin:,.0f} s: {what} …")

        make_aged(spark, lake, objects, age, out, say)
        spark.stop()
    console.print(f"made in {time.monotonic() - begin:,.0f} s: {_ROOT} in {out}")


def _measured(lake: Lake, out: Path, console: Console) -> Iterator[tuple[str, Cost]]:
    old = [query for query in QUERIES if lake.has(query.writes)]
    for query in old:
        source = [] if query.reads else ["--source", str(out / "source")]
        yield _one(lake, ("checkpoints", "reset", query.name, *source), out, console)
    first = min((out / "source").iterdir())
    shutil.copy(first, first.with_name(f"new-{time.time_ns()}.jsonl"))  # ingest knows files by their names
    os.environ["ADLOOM_JOB__TRIGGER"] = "available_now"
    for job in QUERIES_OF_JOB:
        source = [] if all(query.reads for query in queries_of(job)) else ["--source", str(out / "source")]
        yield _one(lake, ("job", job, *source), out, console)
    for command in _COMMANDS:
        yield _one(lake, command, out, console)


def _one(lake: Lake, command: Sequence[str], out: Path, console: Console) -> tuple[str, Cost]:
    name = " ".join(one for one in command if "/" not in one and one != "--source")
    log = out / f"{name.replace(' ', '-')}.log"
    try:
        cost = run_measured([*ADLOOM, *command, "--lake", lake.root], log)
    except subprocess.CalledProcessError as error:
        console.print(f"{name}: exit code {error.returncode}: see {log}")
        cost = Cost(float("nan"), float("nan"), float("nan"))
    console.print(f"{name}: {cost.wall_s:,.1f} s")
    return name, cost


if __name__ == "__main__":
    typer.run(main)
