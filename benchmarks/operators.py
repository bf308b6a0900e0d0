"""The cost of each stateful operator, by number of keys and state store: `make bench-operators`."""

import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.measure import cpu_seconds, run_measured
from spark_jobs.config.choices import StateStore
from spark_jobs.config.durations import microseconds
from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import SILVER_EVENTS
from spark_jobs.queries.attribute.operator import attribute
from spark_jobs.queries.attribute.query import NAME as ATTRIBUTE
from spark_jobs.queries.campaign_stats.operator import campaign_stats
from spark_jobs.queries.campaign_stats.query import NAME as CAMPAIGN_STATS_QUERY
from spark_jobs.queries.deduplicate.operator import deduplicate
from spark_jobs.queries.deduplicate.query import NAME as DEDUPLICATE
from spark_jobs.queries.moving_average.operator import moving_average
from spark_jobs.queries.moving_average.query import NAME as MOVING_AVERAGE
from spark_jobs.queries.sessionize.operator import sessionize
from spark_jobs.queries.sessionize.query import NAME as SESSIONIZE
from spark_jobs.queries.user_status.operator import user_status
from spark_jobs.queries.user_status.query import NAME as USER_STATUS_QUERY
from spark_jobs.spark.names import KEYED_STATE_CONF
from spark_jobs.spark.session import start_session, using

_BATCHES = 8
_START = datetime(2026, 3, 1, tzinfo=UTC)
_CLICK_EVERY, _CLICK_AFTER = 10, 100
"""Every tenth event is a click, on the impression this many events before it."""
_KEY_COUNTS = (10_000, 1_000_000)
_READ, _AGGREGATE = "read", "aggregate by user"

Operator = Callable[[DataFrame, DataFrame, DataFrame], DataFrame]
"""Builds output rows from up to three reads of the same events."""


@dataclass(frozen=True)
class Case:
    """An operator to measure.

    Attributes:
        rows: applies it to the events.
        horizon: how long it keeps a key, approximately, in event time.
        is_python: whether its state function runs in Python.
        is_keyed_by_event: whether its keys are events; else they are users or campaigns.
    """

    rows: Operator
    horizon: timedelta
    is_python: bool = False
    is_keyed_by_event: bool = False


def cases(settings: Settings) -> dict[str, Case]:
    """All cases by name; the first only reads and keeps no state."""
    reach, window = settings.attribute.window, settings.campaign_stats.window
    average, status = settings.moving_average, settings.user_status
    return {
        _READ: Case(lambda events, *_: events, timedelta(hours=1)),
        _AGGREGATE: Case(lambda events, *_: _newest_by_user(events), timedelta(hours=1)),
        DEDUPLICATE: Case(
            lambda events, *_: deduplicate(events, settings.deduplicate),
            settings.deduplicate.watermark,
            is_keyed_by_event=True,
        ),
        ATTRIBUTE: Case(
            lambda left, right, _: attribute(left, right, settings.attribute),
            settings.attribute.click_watermark + reach,
            is_keyed_by_event=True,
        ),
        SESSIONIZE: Case(
            lambda events, *_: sessionize(events, settings.sessionize),
            settings.sessionize.watermark + settings.sessionize.gap,
        ),
        CAMPAIGN_STATS_QUERY: Case(
            lambda shown, clicked, clicks: campaign_stats(
                shown, clicked, clicks, settings.campaign_stats, settings.attribute
            ),
            settings.campaign_stats.watermark + window + reach,
        ),
        MOVING_AVERAGE: Case(
            lambda events, *_: moving_average(events, average), average.watermark + average.timeout, is_python=True
        ),
        USER_STATUS_QUERY: Case(
            lambda events, *_: user_status(events, status), status.watermark + status.idle_after, is_python=True
        ),
    }


def _newest_by_user(events: DataFrame) -> DataFrame:
    """The smallest native state per key: the baseline for the state functions."""
    return events.groupBy("user_id").agg(F.max("event_time").alias("newest"), F.count("*").alias("events"))


def main(
    events: Annotated[int, typer.Option(help="Events per measurement.")] = 1_000_000,
    only: Annotated[list[str] | None, typer.Option(help="Measure only this operator; repeatable.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for inputs and results; replaced.")] = Path("build/bench-operators"),
) -> None:
    """Run each operator alone over the same number of events, with few and many keys, on both state stores."""
    console = Console()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    chosen = {name: case for name, case in cases(Settings()).items() if not only or name in only}
    if only and (unknown := set(only) - chosen.keys()):
        raise SystemExit(f"there is no operator {min(unknown)!r}; the operators are {', '.join(cases(Settings()))}")
    plan = [
        (name, case, keys, store)
        for name, case in chosen.items()
        for keys in _KEY_COUNTS
        for store in StateStore
        # State functions need RocksDB; reading keeps no state, so one measurement is enough.
        if store is StateStore.ROCKSDB or not (case.is_python or name == _READ)
    ]
    results = [_measured(out, events, *one) for one in track(plan, "operators", console=console)]
    file = out / "results.json"
    when = datetime.now(UTC).isoformat(timespec="seconds")
    file.write_text(json.dumps({"when": when, "events": events, "cores": os.cpu_count(), "runs": results}, indent=2))
    _report(console, events, results)
    console.print(f"results: {file}")


def _measured(out: Path, events: int, name: str, case: Case, keys: int, store: StateStore) -> dict[str, Any]:
    figures = out / "figures.json"
    command = [sys.executable, "-m", "benchmarks.operators", "--one", name, str(keys), store.value, str(events)]
    cost = run_measured([*command, str(out), str(figures)], out / "log.txt")
    found: dict[str, Any] = json.loads(figures.read_text())
    return {
        "operator": name,
        "state_in": "Python" if case.is_python else "Java",
        "store": store.value,
        "keys": keys,
        **found,
        "peak_mib": round(cost.peak_mib),
    }


def _report(console: Console, events: int, results: list[dict[str, Any]]) -> None:
    table = Table(title=f"{events:,} events each, {os.cpu_count()} cores")
    for heading in ("operator", "state in", "store"):
        table.add_column(heading)
    for heading in ("keys", "events/s", "CPU s/million", "state rows", "state MiB", "peak MiB"):
        table.add_column(heading, justify="right")
    names = ("operator", "state_in", "store", "keys", "events_per_s", "cpu_s_per_million")
    for result in results:
        values = [result[name] for name in (*names, "state_rows", "state_mib", "peak_mib")]
        table.add_row(*[value if isinstance(value, str) else f"{value:,}" for value in values])
    console.print(table)


def run_one(name: str, keys: int, store: StateStore, events: int, out: Path, figures: Path) -> None:
    """Measures one operator in this process and writes the results to the file ``figures``."""
    settings = Settings.model_validate({"spark": {"state_store": store.value}})
    case = cases(settings)[name]
    spark = start_session(settings)
    keys_seen_in_horizon = keys if case.is_keyed_by_event else 2 * keys
    apart_us = max(1, microseconds(case.horizon) // keys_seen_in_horizon)
    folder = out / f"events-{keys}-{apart_us}"
    if not folder.exists():
        _make_events(spark, folder, events, keys, apart_us)
    checkpoint = out / "checkpoint"
    shutil.rmtree(checkpoint, ignore_errors=True)
    sides = [
        spark.readStream.format("delta")
        .option("startingVersion", 0)
        .option("maxFilesPerTrigger", 1)
        .load(str(folder))
        .select(*SILVER_EVENTS.column_names)
        for _side in range(3)
    ]
    before, begin = cpu_seconds(os.getpid()), time.monotonic()
    with using(spark, KEYED_STATE_CONF if case.is_python else {}):
        query = (
            case.rows(*sides)
            .writeStream.format("noop")
            .outputMode("update" if name == _AGGREGATE else "append")
            .option("checkpointLocation", str(checkpoint))
            .start()
        )
    query.processAllAvailable()
    wall_s, cpu_s = time.monotonic() - begin, cpu_seconds(os.getpid()) - before
    state = query.lastProgress.stateOperators if query.lastProgress else []
    found = {
        "wall_s": round(wall_s, 2),
        "cpu_s": round(cpu_s, 2),
        "events_per_s": round(events / wall_s),
        "cpu_s_per_million": round(cpu_s / events * 1e6, 1),
        "state_rows": sum(one.numRowsTotal for one in state),
        "state_mib": round(sum(one.memoryUsedBytes for one in state) / 2**20),
    }
    query.stop()
    spark.stop()
    figures.write_text(json.dumps(found))


def _make_events(spark: SparkSession, folder: Path, events: int, keys: int, apart_us: int) -> None:
    """Writes a Delta table with the schema of silver, in time order, one version per batch.

    Each user and campaign recurs every ``keys`` events.
    """
    start_us = int(_START.timestamp()) * 1_000_000
    number = F.col("id")
    is_click = number % _CLICK_EVERY == _CLICK_EVERY - 1
    made = {
        "event_type": F.when(is_click, F.lit("click")).otherwise(F.lit("impression")),
        "event_id": F.concat(F.lit("e"), number.cast("string")),
        "event_time": F.timestamp_micros(F.lit(start_us) + number * apart_us),
        "user_id": F.concat(F.lit("u"), (number % keys).cast("string")),
        "impression_id": F.when(is_click, F.concat(F.lit("e"), (number - _CLICK_AFTER + 1).cast("string"))),
        "campaign_id": F.when(~is_click, F.concat(F.lit("c"), (number % keys).cast("string"))),
        "ad_id": F.when(~is_click, F.lit("a1")),
        "cost_micros": F.when(~is_click, F.pmod(F.hash(number), F.lit(2000)).cast("bigint")),
        "ingest_time": F.timestamp_micros(F.lit(start_us) + number * apart_us),
    }
    for batch in range(_BATCHES):
        part = spark.range(events * batch // _BATCHES, events * (batch + 1) // _BATCHES, numPartitions=1)
        columns = [
            made.get(column.name, F.lit(None)).cast(column.sql_type).alias(column.name)
            for column in SILVER_EVENTS.columns
        ]
        part.select(*columns).write.format("delta").mode("append").save(str(folder))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        run_one(sys.argv[2], int(sys.argv[3]), StateStore(sys.argv[4]), int(sys.argv[5]), *map(Path, sys.argv[6:8]))
    else:
        typer.run(main)
