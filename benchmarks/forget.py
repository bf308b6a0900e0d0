"""Do batches of `deduplicate` take longer the more it remembers? Ours and Spark's: `make bench-forget`."""

import json
import shutil
import statistics
import time
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import count
from pathlib import Path
from typing import Annotated
from unittest import mock

import typer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from rich.console import Console
from rich.table import Table as Grid

from spark_jobs.config.settings import Settings
from spark_jobs.contract.events import CLICK
from spark_jobs.queries.deduplicate.operator import deduplicate
from spark_jobs.spark.java import Lifetime
from spark_jobs.spark.session import start_session

_ROWS, _INTERVAL_S = 2000, 2
"""Of a batch, in event time: 1,000 events a second."""
_FIRST_S = 1_767_225_600
_WARM_UP, _MEASURED = 20, 100
_NAMES = count()
_SCHEMA = "event_type STRING, event_id STRING, event_time TIMESTAMP"


def main(
    keys: Annotated[list[int], typer.Option(help="Keys that are remembered before it begins; repeatable.")] = [  # noqa: B006
        10_000,
        3_600_000,
        10_800_000,
    ],
    out: Annotated[Path, typer.Option(help="Folder for input, state and results; replaced.")] = Path(
        "build/bench-forget"
    ),
) -> None:
    """Measure batches of 2,000 rows of `deduplicate` alone, with its default watermark, on RocksDB."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    results: dict[str, dict[str, float]] = {}
    for remembered in keys:
        for operator in ("adloom", "Spark"):
            hidden = mock.patch("spark_jobs.spark.conf._has_own_jar", return_value=False)
            with hidden if operator == "Spark" else nullcontext():
                spark = start_session(Settings(), lifetime=Lifetime.SERVICE)
            results[f"{remembered:,}, {operator}"] = _measure(spark, out / f"{remembered}-{operator}", remembered)
            spark.stop()
    (out / "results.json").write_text(json.dumps(results, indent=2) + "\n")
    grid = Grid("keys remembered, operator of", *next(iter(results.values())), title="seconds a batch of 2,000 rows")
    for name, found in results.items():
        grid.add_row(name, *[f"{value:,.2f}" for value in found.values()])
    Console().print(grid)


def _measure(spark: SparkSession, folder: Path, remembered: int) -> dict[str, float]:
    (folder / "input").mkdir(parents=True)
    arriving = spark.readStream.schema(_SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / "input"))
    writer = deduplicate(arriving, Settings().deduplicate).writeStream.format("noop")
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).start()
    # What is there was received in one batch, in the order of its times; the stream goes on from its end.
    _put(spark, folder, first=0, rows=remembered, length_s=_INTERVAL_S)
    query.processAllAvailable()
    times = list(_times(spark, query, folder, remembered))[_WARM_UP:]
    query.stop()
    return {
        "median": statistics.median(times),
        "p95": statistics.quantiles(times, n=20)[-1],
        "maximum": max(times),
    }


def _times(spark: SparkSession, query: StreamingQuery, folder: Path, first: int) -> Iterator[float]:
    for number in range(_WARM_UP + _MEASURED):
        _put(spark, folder, first=first + number * _ROWS, rows=_ROWS, start_s=(number + 1) * _INTERVAL_S)
        begin = time.perf_counter()
        query.processAllAvailable()
        yield time.perf_counter() - begin


def _put(
    spark: SparkSession, folder: Path, *, first: int, rows: int, start_s: int = 0, length_s: int = _INTERVAL_S
) -> None:
    """Adds a file of ``rows`` events, whose times are spread over ``length_s`` from ``start_s`` on."""
    name = f"{next(_NAMES):06}"
    number = F.col("id") - first
    time_s = _FIRST_S + start_s + number * length_s / rows
    events: DataFrame = spark.range(first, first + rows, numPartitions=1).select(
        F.lit(CLICK).alias("event_type"),
        F.format_string("e-%012d", F.col("id")).alias("event_id"),
        time_s.cast("timestamp").alias("event_time"),
    )
    events.write.parquet(str(folder / name))
    (written,) = (folder / name).glob("*.parquet")
    written.rename(folder / "input" / f"{name}.parquet")
    shutil.rmtree(folder / name)


if __name__ == "__main__":
    typer.run(main)
