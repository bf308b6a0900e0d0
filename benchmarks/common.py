"""Shared by the benchmarks: input events, the adloom command, the rows of a lake, and what was measured."""

import json
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import duckdb
from rich.console import Console
from rich.table import Table

from benchmarks.measure import Cost
from spark_jobs.config.sections import S3Settings
from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import ATTRIBUTIONS
from spark_jobs.contract.tables import Table as LakeTable
from spark_jobs.generator.generate import generate
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.table_files import live_files
from tests.stack.minio import Minio

ADLOOM = [sys.executable, "-c", "from spark_jobs.cli import main; main()"]
"""The ``adloom`` command of this checkout."""
EVENTS_PER_FILE = 125_000
"""In generated input."""


def make_events(events: int, folder: Path, *, users: int | None = None) -> int:
    """Writes ``events`` good events, some of them twice and none late, to ``folder``; returns the record count."""
    files = max(1, events // EVENTS_PER_FILE)
    spec = GeneratorSpec(events=events, seed=1, late=0, malformed=0, files=files, users=users)
    return generate(spec, folder).records


@contextmanager
def minio_in(out: Path, *, keep: bool = False) -> Iterator[Settings]:
    """Runs a MinIO server with its data in ``out``, and puts its keys into the environment.

    ``out`` is emptied first, unless ``keep`` says that what is there is to be used again.
    """
    minio = Minio(out / "minio")
    if not keep:
        shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True, exist_ok=True)
    os.environ |= minio.settings()
    minio.start()
    try:
        yield Settings(s3=S3Settings(endpoint=minio.endpoint))
    finally:
        minio.stop()


def rows_of(lake: Lake, table: LakeTable) -> str:
    """The newest version of ``table``, in a folder on this machine, as a table function of DuckDB."""
    files = live_files(lake, table, lake.newest_commit(table.path) or 0)
    return f"read_parquet({[str(lake.path / file.key) for file in files]}, hive_partitioning = true)"


def save_costs(costs: Mapping[str, Cost], out: Path) -> None:
    """Writes what was measured so far to ``results.json`` in ``out``: the whole takes long."""
    when = datetime.now(UTC).isoformat(timespec="seconds")
    rows = {name: asdict(cost) for name, cost in costs.items()}
    (out / "results.json").write_text(json.dumps({"when": when, "costs": rows}, indent=2))


def print_costs(console: Console, title: str, costs: Mapping[str, Cost]) -> None:
    """Prints what was measured, a line for each name."""
    table = Table(title=title)
    table.add_column("")
    for heading in ("wall s", "CPU s", "peak MiB"):
        table.add_column(heading, justify="right")
    for name, cost in costs.items():
        table.add_row(name, f"{cost.wall_s:,.1f}", f"{cost.cpu_s:,.1f}", f"{cost.peak_mib:,.0f}")
    console.print(table)


def click_delays(lake: Lake) -> list[tuple[float, float]]:
    """For each click, when it was sent (Unix time), and the seconds until the commit with its attribution."""
    delays: list[tuple[float, float]] = []
    with duckdb.connect() as connection, tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.parquet"
        for commit in lake.files.walk(f"{ATTRIBUTIONS.path}/_delta_log"):
            if not commit.name.endswith(".json"):
                continue
            visible = commit.modified_at.timestamp()
            actions = [json.loads(line) for line in (lake.files.read(commit.key) or b"").splitlines()]
            for added in (action["add"]["path"] for action in actions if _adds_rows(action)):
                file.write_bytes(lake.files.read(f"{ATTRIBUTIONS.path}/{unquote(added)}") or b"")
                query = "SELECT epoch(click_time) FROM read_parquet(?) WHERE status = 'clicked'"
                clicks = connection.execute(query, [str(file)]).fetchall()
                delays.extend((click, visible - click) for (click,) in clicks)
    return delays


def delay_figures(delays: Sequence[float]) -> dict[str, float]:
    """Median, 95th percentile and maximum of ``delays``, in seconds."""
    p95 = statistics.quantiles(delays, n=20)[-1]
    return {"p50_s": round(statistics.median(delays), 2), "p95_s": round(p95, 2), "max_s": round(max(delays), 2)}


def _adds_rows(action: dict[str, Any]) -> bool:
    """Whether an action of a log adds a file with new rows: a compaction writes known ones again."""
    return "add" in action and action["add"]["dataChange"]
