"""The fixed cost of a small batch on a warm JVM: `make bench-batches`."""

import json
import shutil
import statistics
import time
from pathlib import Path
from typing import Annotated

import psutil
import typer
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
)
from rich.console import Console
from rich.table import Table

from benchmarks.measure import cpu_seconds
from spark_jobs.config.choices import JoinState
from spark_jobs.config.settings import Settings
from spark_jobs.generator.generate import generate
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.ingest.query import NAME as INGEST
from spark_jobs.lake.open import open_lake
from spark_jobs.spark.java import Lifetime
from spark_jobs.spark.open_lake import OpenLake
from spark_jobs.spark.session import start_session
from spark_jobs.streams.bounded_run import run
from spark_jobs.streams.progress import QuickListener, listening


class _Watch(QuickListener):
    """Batch durations by query; and for each batch of ``ingest`` when it ended and the CPU seconds spent until then."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = {}
        self.rounds: list[tuple[float, float]] = []

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 named by Spark
        batch = event.progress
        self.seconds.setdefault(batch.name or "", []).append(batch.batchDuration / 1000)
        if batch.name == INGEST:
            self.rounds.append((time.monotonic(), cpu_seconds(psutil.Process().pid)))

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        """Ignored."""

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Ignored."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """Ignored."""


def main(
    batches: Annotated[int, typer.Option(min=8, help="Files, one per batch; the second half is measured.")] = 60,
    rows: Annotated[int, typer.Option(min=100, help="Events per file.")] = 1000,
    lifetime: Annotated[Lifetime, typer.Option(help="How long Java expects to work.")] = Lifetime.SERVICE,
    join_state: Annotated[JoinState, typer.Option(help="The setting spark.join_state.")] = JoinState.BY_TIME,
    out: Annotated[Path, typer.Option(help="Folder for input, lake and results; replaced.")] = Path(
        "build/bench-batches"
    ),
) -> None:
    """Feed the main job one small file at a time, and measure CPU seconds per batch of its four queries."""
    console = Console()
    shutil.rmtree(out, ignore_errors=True)
    generate(GeneratorSpec(events=batches * rows, seed=1, late=0, malformed=0, files=batches), out / "events")
    settings = Settings.model_validate(
        {"ingest": {"max_bytes_per_batch": 1}, "spark": {"join_state": join_state.value}}
    )
    spark = start_session(settings, log_file=out / "spark.log", lifetime=lifetime)
    watch = _Watch()
    with console.status(f"{batches} batches of {rows:,} events"), listening(spark, watch):
        run(OpenLake.of(open_lake(str(out / "lake")), settings, spark), out / "events", drain=False, measure=False)
    spark.stop()
    half = len(watch.rounds) // 2
    (begin, spent), (end, spent_by_end) = watch.rounds[half - 1], watch.rounds[-1]
    rounds = len(watch.rounds) - half
    medians = {query: round(statistics.median(took[len(took) // 2 :]), 2) for query, took in watch.seconds.items()}
    result = {
        "rounds": rounds,
        "wall_s": round((end - begin) / rounds, 2),
        "cpu_s": round((spent_by_end - spent) / rounds, 2),
        "batch_s": medians,
    }
    (out / "results.json").write_text(json.dumps(result, indent=2) + "\n")
    table = Table(
        "query", title=f"{rounds} rounds of {rows:,} events: {result['cpu_s']} CPU s, {result['wall_s']} s each"
    )
    table.add_column("a batch, s", justify="right")
    for query, seconds in medians.items():
        table.add_row(query, f"{seconds:.2f}")
    console.print(table)


if __name__ == "__main__":
    typer.run(main)
