"""Does a live job slow down with the age of its tables? Polls and commits on logs young and old: `make bench-old-log`.

At an interval of 5 s a table has 518,400 commits after 30 days, which is how long Delta keeps them.
"""

import json
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Annotated, Any

import typer
from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import track
from rich.table import Table as Grid

from benchmarks.common import minio_in
from spark_jobs.contract.tables import CAMPAIGN_STATS
from spark_jobs.lake.layout import Lake, commit_key
from spark_jobs.lake.notes import CommitNote
from spark_jobs.lake.open import open_lake
from spark_jobs.spark.java import Lifetime
from spark_jobs.spark.session import start_session
from spark_jobs.spark.write_delta import append_rows
from tests.stack.flow import adloom

_EVERY = 50
"""Commits from one checkpoint of the log to the next, as adloom's tables have it."""
_WARM_UP, _MEASURED = 10, 20
_BATCHES = count()
_Figures = dict[str, tuple[float, float]]


def main(
    commits: Annotated[int, typer.Option(help="Commits in the old log, each with its checksum.")] = 20_000,
    out: Annotated[Path, typer.Option(help="Folder for MinIO and results; replaced.")] = Path("build/bench-old-log"),
) -> None:
    """Measure a poll of a table and a commit to it, on MinIO, with a young log and an old one."""
    console = Console()
    with minio_in(out) as settings:
        lake = open_lake("s3a://bench/lake", settings.s3)
        adloom("init", "--lake", lake.root)
        spark = start_session(settings, lake=lake, lifetime=Lifetime.SERVICE)
        results = {f"{_EVERY} commits": _measure(spark, lake, warm_up=_EVERY)}
        _age(lake, commits)
        spark.stop()
        spark = start_session(settings, lake=lake, lifetime=Lifetime.SERVICE)
        results[f"{commits:,} commits"] = _measure(spark, lake, warm_up=_WARM_UP)
        spark.stop()
    (out / "results.json").write_text(json.dumps(results, indent=2) + "\n")
    grid = Grid("log", "poll, ms", "commit, ms", "poll of Python, ms", title="median (p95)")
    for name, found in results.items():
        grid.add_row(name, *[f"{middle:,.0f} ({high:,.0f})" for middle, high in found.values()])
    console.print(grid)


def _measure(spark: SparkSession, lake: Lake, *, warm_up: int) -> _Figures:
    rows = spark.range(10).selectExpr(
        *[f"CAST(NULL AS {column.sql_type}) AS {column.name}" for column in CAMPAIGN_STATS.columns]
    )

    def append() -> None:
        append_rows(rows, lake, CAMPAIGN_STATS, CommitNote(writer="benchmark", batch=next(_BATCHES)))

    for _ in range(warm_up):
        append()
    jvm: Any = spark._jvm  # noqa: SLF001
    log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, lake.table(CAMPAIGN_STATS))  # noqa: SLF001
    nothing = getattr(jvm.scala, "None$").__getattr__("MODULE$")
    return {
        "poll": _times(lambda: log.update(False, nothing, nothing)),
        "commit": _times(append),
        "python": _times(lambda: lake.newest_commit(CAMPAIGN_STATS.path)),
    }


def _times(work: Callable[[], object]) -> tuple[float, float]:
    """Median and 95th percentile in milliseconds."""
    times = []
    for _ in range(_MEASURED):
        begin = time.perf_counter()
        work()
        times.append((time.perf_counter() - begin) * 1000)
    return statistics.median(times), statistics.quantiles(times, n=20)[-1]


def _age(lake: Lake, commits: int) -> None:
    """Adds commits without rows to the log, each with its checksum, up to version ``commits``, and one checkpoint."""
    newest = lake.newest_commit(CAMPAIGN_STATS.path)
    assert newest is not None  # noqa: S101 it was written to
    log = f"{CAMPAIGN_STATS.path}/_delta_log"
    last = lake.files.read(commit_key(CAMPAIGN_STATS, newest)) or b""
    info = next(line for line in last.splitlines() if line.startswith(b'{"commitInfo"'))
    checksum = lake.files.read(f"{log}/{newest:020}.crc") or b"{}"

    def write(version: int) -> None:
        lake.files.write(commit_key(CAMPAIGN_STATS, version), info)
        lake.files.write(f"{log}/{version:020}.crc", checksum)

    versions = range(newest + 1, commits + 1)
    with ThreadPoolExecutor(8) as pool:
        for _ in track(pool.map(write, versions), "making commits", total=len(versions)):
            pass
    # The state is that of the last checkpoint: nothing was added since.
    pointer = json.loads(lake.files.read(f"{log}/_last_checkpoint") or b"{}")
    state = lake.files.read(f"{log}/{pointer['version']:020}.checkpoint.parquet") or b""
    place = commits - commits % _EVERY
    lake.files.write(f"{log}/{place:020}.checkpoint.parquet", state)
    lake.files.write(f"{log}/_last_checkpoint", json.dumps(pointer | {"version": place}).encode())


if __name__ == "__main__":
    typer.run(main)
