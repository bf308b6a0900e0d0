"""The main job on a standalone cluster of 1, 2 and 4 single-core workers: `make bench-scaling`."""

import json
import os
import shutil
from collections import Counter
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.common import ADLOOM, make_events
from benchmarks.measure import run_measured
from spark_jobs.contract.tables import ATTRIBUTIONS, BRONZE_EVENTS, SESSIONS, SILVER_EVENTS
from spark_jobs.places import CHECKPOINTS
from spark_jobs.queries.attribute.query import NAME as ATTRIBUTE
from spark_jobs.queries.deduplicate.query import NAME as DEDUPLICATE
from spark_jobs.queries.registry import JOB_OF_QUERY
from spark_jobs.queries.sessionize.query import NAME as SESSIONIZE
from tests.support.clusters import standalone_cluster

_WORKERS = (1, 2, 4)
_STATEFUL = (DEDUPLICATE, ATTRIBUTE, SESSIONIZE)
_WRITTEN = (BRONZE_EVENTS, SILVER_EVENTS, ATTRIBUTIONS, SESSIONS)


@dataclass(frozen=True)
class Scale:
    """A run with ``workers`` workers.

    Bytes are per record: of shuffles, of state in checkpoints by query, of tables by name. ``task_cpu_s`` is the CPU
    time of tasks; ``cpu_s`` covers all processes: driver, workers, compilers and garbage collectors included.
    """

    workers: int
    wall_s: float
    cpu_s: float
    task_cpu_s: float
    peak_mib: float
    shuffle_bytes: float
    state_bytes: dict[str, float]
    table_bytes: dict[str, float]


def main(
    events: Annotated[int, typer.Option(help="Good events to generate.")] = 1_000_000,
    out: Annotated[Path, typer.Option(help="Folder for input, lakes and results; replaced.")] = Path("build/scaling"),
) -> None:
    """Run the main job on local clusters, and count the bytes in shuffles, state and tables."""
    console = Console()
    shutil.rmtree(out, ignore_errors=True)
    with console.status("making events"):
        records = make_events(events, out / "events")
    scales = [_run(out, workers, records) for workers in track(_WORKERS, "clusters", console=console)]
    result = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "records": records,
        "cores": os.cpu_count(),
        "runs": [asdict(scale) for scale in scales],
    }
    (out / "results.json").write_text(json.dumps(result, indent=2) + "\n")
    console.print(_table(scales, records))
    last = scales[-1]
    for what, sizes in (("state", last.state_bytes), ("tables", last.table_bytes)):
        console.print(f"{what}, bytes a record: " + ", ".join(f"{name} {size:,.0f}" for name, size in sizes.items()))
    console.print(f"results: {out / 'results.json'}")


def _run(out: Path, workers: int, records: int) -> Scale:
    folder = out.resolve() / f"workers-{workers}"
    lake, log = folder / "lake", folder / "spark-events"
    log.mkdir(parents=True)
    (folder / "spark-defaults.conf").write_text(
        f"spark.eventLog.enabled true\nspark.eventLog.dir {log.as_uri()}\n"
        "spark.eventLog.compress false\nspark.eventLog.rolling.enabled false\n"
    )
    with standalone_cluster(folder, workers=workers, cores=1) as cluster:
        settings = {
            "SPARK_CONF_DIR": folder,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "ADLOOM_SPARK__MASTER": cluster.master,
            "ADLOOM_SPARK__MAX_CORES": workers,
            # The most cores that can work on a query; the same in all runs.
            "ADLOOM_SPARK__SHUFFLE_PARTITIONS": max(_WORKERS),
        }
        command = ["env", *[f"{name}={value}" for name, value in settings.items()], *ADLOOM, "run"]
        command += ["--source", str(out / "events"), "--lake", str(lake), "--drain", "--no-measure"]
        cost = run_measured(command, folder / "log.txt", servers=cluster.pids)
    tasks = _tasks(log)
    return Scale(
        workers,
        round(cost.wall_s, 1),
        round(cost.cpu_s, 1),
        round(tasks["cpu_ns"] / 1e9, 1),
        round(cost.peak_mib),
        round(tasks["shuffle_bytes"] / records, 1),
        {
            query: _bytes_below(lake / CHECKPOINTS / JOB_OF_QUERY[query] / query, "state") / records
            for query in _STATEFUL
        },
        {table.name: _bytes_below(lake / table.path, "*.parquet") / records for table in _WRITTEN},
    )


def _tasks(folder: Path) -> Counter[str]:
    """CPU time and shuffle bytes of all tasks, from Spark's event log."""
    sums: Counter[str] = Counter()
    for file in folder.glob("app-*"):
        with file.open() as events:
            for event in map(json.loads, events):
                if metrics := event["Event"] == "SparkListenerTaskEnd" and event.get("Task Metrics"):
                    sums["cpu_ns"] += metrics["Executor CPU Time"]
                    sums["shuffle_bytes"] += metrics["Shuffle Write Metrics"]["Shuffle Bytes Written"]
    return sums


def _bytes_below(folder: Path, name: str) -> int:
    """The total size of the files below ``folder`` that match ``name`` or are in a folder that does."""
    return sum(
        file.stat().st_size for found in folder.rglob(name) for file in (found, *found.rglob("*")) if file.is_file()
    )


def _table(scales: list[Scale], records: int) -> Table:
    table = Table(title=f"{records:,} records, {os.cpu_count()} cores")
    for heading in ("workers", "wall s", "records/s", "CPU s", "of that in tasks", "peak MiB", "shuffled bytes/record"):
        table.add_column(heading, justify="right")
    for one in scales:
        cells = (f"{one.wall_s:,}", f"{records / one.wall_s:,.0f}", f"{one.cpu_s:,}", f"{one.task_cpu_s:,}")
        table.add_row(str(one.workers), *cells, f"{one.peak_mib:,.0f}", f"{one.shuffle_bytes:,.0f}")
    return table


if __name__ == "__main__":
    typer.run(main)
