"""CPU cost of a million events in the container stack, by service: `make bench-compose`."""

import json
import os
import shutil
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from spark_jobs.generator.publish import generated_records, publish
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.queries.registry import JOB_OF_QUERY
from spark_jobs.streams.reports import QueryReport, read_reports
from tests.compose.stack import Stack

_PARTS = ("kafka", "minio", "spark-master", "spark-worker", "drivers", "scheduler", "triggerer", "api-server")
_LONGEST_S = 3600
_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


def main(
    events: Annotated[int, typer.Option(help="Events to measure; a fifth of that is sent first as warm-up.")] = 500_000,
    workers: Annotated[int, typer.Option(help="Spark workers.")] = 1,
    cores: Annotated[int, typer.Option(help="Worker cores each job uses.")] = 2,
    out: Annotated[Path, typer.Option(help="Folder for results; replaced.")] = Path("build/bench-compose"),
) -> None:
    """Start the stack, send events at full speed, and count CPU seconds per container until all are processed."""
    console = Console()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    stack = Stack(out.resolve(), "adloom-bench", {"SPARK_WORKERS": str(workers), "MAX_CORES": str(cores)})
    try:
        with console.status("starting the stack"):
            stack.up()
        os.environ |= {
            "AWS_ACCESS_KEY_ID": "adloom-root",
            "AWS_SECRET_ACCESS_KEY": stack.variables["MINIO_ROOT_PASSWORD"],
        }
        stack.lake = stack.open_lake()
        with console.status("deploying the jobs"):
            stack.wait_for("deploy_streams", stack.trigger("deploy_streams"), "success")
            # Periodic DAGs would distort the figures.
            for dag in ("validate_tables", "clean_checkpoints", "maintain_tables"):
                stack.pause(dag, is_paused=True)
        with console.status("warming up"):
            _process(stack, events // 5, seed=1)
        before, begin = _cpu_seconds(stack), time.monotonic()
        with console.status(f"processing {events:,} events"):
            records = _process(stack, events, seed=2)
        seconds = time.monotonic() - begin
        spent = {part: used - before[part] for part, used in _cpu_seconds(stack).items()}
    finally:
        stack.down()
    result = {
        "records": records,
        "workers": workers,
        "cores_of_each_job": cores,
        "wall_s": round(seconds, 1),
        "records_per_s": round(records / seconds),
        "cpu_s_per_million": {part: round(used / records * 1e6, 1) for part, used in spent.items()},
    }
    (out / "results.json").write_text(json.dumps(result, indent=2) + "\n")
    console.print(_table(result))


def _process(stack: Stack, events: int, *, seed: int) -> int:
    """Sends ``events`` with current times, waits until every query has processed them, and returns the record count."""
    before = _done(stack)
    spec = GeneratorSpec(events=events, seed=seed, late=0, malformed=0, duplicates=0.03)
    sent = publish(generated_records(spec), stack.kafka, rate=None, is_live=True).records
    deadline = time.monotonic() + _LONGEST_S
    while (done := _done(stack))["ingest"] - before["ingest"] < sent or not _is_idle(stack):
        if time.monotonic() > deadline:
            raise TimeoutError(f"not all {sent:,} records were processed within {_LONGEST_S} s; rows by query: {done}")
        time.sleep(2)
    return sent


def _done(stack: Stack) -> dict[str, int]:
    """The rows each query has processed."""
    known = {report.query: report.total_rows for report in _reports(stack)}
    return {query: known.get(query, 0) for query in JOB_OF_QUERY}


def _is_idle(stack: Stack) -> bool:
    """Whether every query is idle: its latest report has no input rows and no backlog."""
    return all(not report.input_rows and not report.backlog_records for report in _reports(stack))


def _reports(stack: Stack) -> list[QueryReport]:
    return list(read_reports(stack.lake, JOB_OF_QUERY))


def _cpu_seconds(stack: Stack) -> dict[str, float]:
    """The CPU seconds used by the containers of each service."""
    ids = stack.containers()
    return {part: sum(_used_by(stack, container) for container in ids[part]) for part in _PARTS}


def _used_by(stack: Stack, container: str) -> float:
    """CPU seconds of the container's processes and their reaped children; cgroup paths differ from host to host."""
    stats = stack.docker("exec", container, "sh", "-c", "cat /proc/[0-9]*/stat 2>/dev/null || true")
    # After the command, which is in parentheses: utime, stime, cutime and cstime are the 12th to 15th.
    times = [line.rpartition(")")[2].split()[11:15] for line in stats.splitlines()]
    return sum(int(ticks) for process in times for ticks in process) / _TICKS_A_SECOND


def _table(result: dict[str, Any]) -> Table:
    table = Table("part", "CPU s per million events", title=f"{result['records']:,} records in {result['wall_s']} s")
    for part, seconds in result["cpu_s_per_million"].items():
        table.add_row(part, f"{seconds:,.1f}")
    table.add_row("all", f"{sum(result['cpu_s_per_million'].values()):,.1f}", style="bold")
    return table


if __name__ == "__main__":
    typer.run(main)
