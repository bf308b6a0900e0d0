"""``adloom state``: the state of the queries after their last batch."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from spark_jobs.console.run import session
from spark_jobs.console.terminal import terminal, utc
from spark_jobs.contracts.errors import SettingsError
from spark_jobs.contracts.settings import load_settings
from spark_jobs.lake.layout import Lake
from spark_jobs.queries import JOB_OF_QUERY
from spark_jobs.queries.ingest import NAME as INGEST
from spark_jobs.runtime.lakes import open_existing
from spark_jobs.sources.state import Part, find_stores, read_state, weigh

_STATEFUL = [query for query in JOB_OF_QUERY if query != INGEST]


def show_summary(queries: list[str], location: str, config: Path | None) -> None:
    """Prints for each store of ``queries``, or of all, its size, its age, and how it is spread over the partitions.

    Raises:
        LakeError: there is no lake.
        SettingsError: a query keeps no state.
    """
    _check(queries)
    with _open(location, config) as (console, spark, lake):
        table = Table(box=SIMPLE_HEAD, title=f"{lake.place()}: state", title_justify="left")
        table.add_column("query", overflow="fold")
        table.add_column("operator", overflow="fold")
        for heading in ("batch", "rows", "KB", "heaviest partition", "share of rows"):
            table.add_column(heading, justify="right")
        table.add_column("oldest (UTC)", no_wrap=True)
        for store, parts in weigh(spark, lake, find_stores(lake, queries or _STATEFUL)).items():
            table.add_row(store.query, store.name, str(store.batch), *_spread(parts))
        console.print(table)


def _spread(parts: list[Part]) -> list[str]:
    total, size = sum(part.rows for part in parts), sum(part.bytes for part in parts)
    heaviest = max(parts, key=lambda part: part.rows, default=None)
    oldest_us = min((part.oldest_us for part in parts if part.oldest_us is not None), default=None)
    return [
        f"{total:,}",
        f"{size / 1000:,.1f}",
        str(heaviest.partition) if heaviest else "none",
        f"{heaviest.rows / total:.0%}" if heaviest else "0%",
        _time(oldest_us),
    ]


def show_keys(query: str, location: str, limit: int, config: Path | None) -> None:
    """Prints the heaviest keys of the state of ``query``.

    Raises:
        LakeError: there is no lake.
        SettingsError: the query keeps no state.
    """
    _check([query])
    with _open(location, config) as (console, spark, lake):
        for store in find_stores(lake, [query]):
            table = Table(box=SIMPLE_HEAD, title=f"{query}, {store.name}: heaviest keys", title_justify="left")
            table.add_column("key", overflow="fold")
            for heading in ("rows", "bytes", "partition"):
                table.add_column(heading, justify="right")
            table.add_column("oldest (UTC)", no_wrap=True)
            heaviest = (
                read_state(spark, lake, store)
                .groupBy(F.to_json("key").alias("key"))
                .agg(
                    F.count("*").alias("rows"),
                    F.sum("bytes").alias("bytes"),
                    F.first("partition_id").alias("partition"),
                    F.unix_micros(F.min("oldest")).alias("oldest_us"),
                )
                .orderBy(F.desc("bytes"), "key")
                .limit(limit)
            )
            for row in heaviest.collect():
                numbers = f"{row['rows']:,}", f"{row['bytes']:,}", str(row["partition"])
                table.add_row(row["key"], *numbers, _time(row["oldest_us"]))
            console.print(table)


def show_entries(query: str, location: str, where: str | None, limit: int, config: Path | None) -> None:
    """Prints entries of the state of ``query``, optionally only those for which ``where`` is true.

    Args:
        query: its name.
        location: the lake.
        where: SQL over ``key``, ``value``, ``partition_id``, ``bytes`` and ``oldest``.
        limit: how many entries at most.
        config: file of settings.

    Raises:
        LakeError: there is no lake.
        SettingsError: the query keeps no state.
    """
    _check([query])
    with _open(location, config) as (console, spark, lake):
        for store in find_stores(lake, [query]):
            rows = read_state(spark, lake, store)
            chosen = rows.where(where) if where else rows
            console.print(Text.assemble((f"{query}, {store.name}", "bold"), f" after batch {store.batch}"))
            shown = chosen.select("partition_id", F.to_json("key").alias("key"), F.to_json("value").alias("value"))
            for row in shown.orderBy("key").limit(limit).collect():
                console.out(f"  {row['partition_id']}  {row['key']}  {row['value']}")


@contextmanager
def _open(location: str, config: Path | None) -> Iterator[tuple[Console, SparkSession, Lake]]:
    console, settings = terminal(is_uncut=True), load_settings(config, os.environ)
    lake = open_existing(location, settings.s3)
    with session(console, settings, lake) as spark:
        yield console, spark, lake


def _check(queries: list[str]) -> None:
    for query in queries:
        if query not in _STATEFUL:
            raise SettingsError(f"no query {query!r} keeps state; those that do: {', '.join(_STATEFUL)}")


def _time(us: int | None) -> str:
    return "" if us is None else utc(datetime.fromtimestamp(us / 1e6, tz=UTC))
