"""Events/s, CPU seconds and peak memory of the main job and of each stage, compared with DuckDB: `make bench`."""

import json
import os
import shutil
import sys
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.common import ADLOOM, make_events
from benchmarks.measure import Cost, run_measured
from spark_jobs.config.sections import S3Settings
from spark_jobs.lake.open import open_existing
from spark_jobs.lake.store.arrow import row_store
from spark_jobs.sql.lake_sql import LakeSql

_STAGES = ("ingest", "deduplicate", "attribute", "sessionize")


def main(
    events: Annotated[int, typer.Option(help="Good events to generate.")] = 1_000_000,
    out: Annotated[Path, typer.Option(help="Folder for input, lakes and results; replaces its bench-*.")] = Path(
        "build"
    ),
    users: Annotated[int | None, typer.Option(help="Number of users; by default one per 20 events.")] = None,
    stages: Annotated[bool, typer.Option(help="Also measure each stage alone.")] = True,
) -> None:
    """Measure adloom on generated events without late ones, and DuckDB doing the same work on the same files."""
    console, work = Console(), out / f"bench-{events}"
    shutil.rmtree(work, ignore_errors=True)
    records = make_events(events, work / "events", users=users)
    python, source = [sys.executable, "-m"], str(work / "events")
    log = work / "log.txt"
    costs: dict[str, Cost] = {}
    run = [*ADLOOM, "run", "--source", source, "--lake", str(work / "lake"), "--drain", "--no-measure"]
    with console.status("adloom run"):
        costs["adloom run"] = run_measured(run, log)
    for stage in _STAGES if stages else ():
        with console.status(stage):
            command = [*python, "benchmarks.stage", stage, source, str(work / "stages")]
            costs[f"{stage} alone"] = run_measured(command, log)
    with console.status("DuckDB"):
        costs["DuckDB, one batch"] = run_measured(
            [*python, "benchmarks.duckdb_batch", source, str(work / "duckdb")], log
        )
    _compare(work, log.read_text())
    _report(console, costs, records, work)


def _compare(work: Path, output: str) -> None:
    """Discards the figures unless both found the same rows."""
    lake = open_existing(str(work / "lake"))
    with closing(LakeSql(lake, row_store(lake, S3Settings()))) as sql:
        counted = sql.run(
            "SELECT status, count(*) FROM attributions GROUP BY 1 UNION ALL SELECT 'sessions', count(*) FROM sessions"
        )
        ours = {name: int(count) for name, count in (counted.fetchall() if counted else [])}
    theirs = {name: int(count) for name, count in (line.split() for line in output.splitlines())}
    if ours != theirs:
        raise SystemExit(f"adloom found {ours}, DuckDB {theirs}: the results differ, so the figures are not comparable")


def _report(console: Console, costs: dict[str, Cost], records: int, work: Path) -> None:
    table = Table(title=f"{records:,} records, {os.cpu_count()} cores")
    table.add_column("")
    for heading in ("wall s", "records/s", "CPU s", "records/CPU s", "peak MiB"):
        table.add_column(heading, justify="right")
    rows = []
    for name, cost in costs.items():
        row = {
            "name": name,
            "wall_s": round(cost.wall_s, 2),
            "records_per_s": round(records / cost.wall_s),
            "cpu_s": round(cost.cpu_s, 2),
            "records_per_cpu_s": round(records / cost.cpu_s),
            "peak_mib": round(cost.peak_mib),
        }
        rows.append(row)
        table.add_row(name, *[f"{value:,}" for key, value in row.items() if key != "name"])
    console.print(table)
    file = work / "results.json"
    when = datetime.now(UTC).isoformat(timespec="seconds")
    file.write_text(json.dumps({"when": when, "records": records, "cores": os.cpu_count(), "costs": rows}, indent=2))
    console.print(f"results: {file}")


if __name__ == "__main__":
    typer.run(main)
