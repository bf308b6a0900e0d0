"""``adloom state``: the state of the queries after their last batch."""

import os
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from spark_jobs.cli.opening import session
from spark_jobs.cli.options import ConfigOption, LakeOption
from spark_jobs.cli.terminal import terminal, utc
from spark_jobs.config.settings import load_settings
from spark_jobs.errors import SettingsError
from spark_jobs.ingest.query import NAME as INGEST
from spark_jobs.lake.open import open_existing
from spark_jobs.queries.registry import JOB_OF_QUERY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from spark_jobs.spark.open_lake import OpenLake
    from spark_jobs.streams.state_reader import Part

app = typer.Typer(
    name="state",
    no_args_is_help=True,
    help="Inspect the state in the checkpoints of a lake, read-only; jobs may keep running.",
)
_Query = Annotated[str, typer.Argument(help="A query with state, e.g. attribute or user_status.", metavar="QUERY")]
_Limit = Annotated[int, typer.Option(help="Number of rows at most.", min=1, metavar="N")]


_STATEFUL = [query for query in JOB_OF_QUERY if query != INGEST]


@app.command("summary", epilog="Example:  adloom state summary --lake s3a://ads/lake")
def summary(
    location: LakeOption,
    queries: Annotated[
        list[str] | None, typer.Argument(help="Queries; default: all that keep state.", metavar="QUERY")
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Show how much state each operator holds: rows, size as JSON, oldest time, and skew across partitions.

    A partition with far more than its share of the rows keeps one core busy while the others wait.
    """
    from spark_jobs.streams.state_reader import find_stores, weigh

    _check(queries or [])
    with _open(location, config) as (console, lake):
        table = Table(box=SIMPLE_HEAD, title=f"{lake.shown()}: state", title_justify="left")
        table.add_column("query", overflow="fold")
        table.add_column("operator", overflow="fold")
        for heading in ("batch", "rows", "KB", "heaviest partition", "share of rows"):
            table.add_column(heading, justify="right")
        table.add_column("oldest (UTC)", no_wrap=True)
        for store, parts in weigh(lake, find_stores(lake, queries or _STATEFUL)).items():
            table.add_row(store.query, store.name, str(store.batch), *_spread(parts))
        console.print(table)


@app.command("keys", epilog="Example:  adloom state keys sessionize --lake lake --limit 5")
def keys(query: _Query, location: LakeOption, limit: _Limit = 10, config: ConfigOption = None) -> None:
    """Show the keys with the most state, such as a user who never goes idle."""
    from pyspark.sql import functions as F

    from spark_jobs.streams.state_reader import find_stores, read_state

    _check([query])
    with _open(location, config) as (console, lake):
        for store in find_stores(lake, [query]):
            table = Table(box=SIMPLE_HEAD, title=f"{query}, {store.name}: heaviest keys", title_justify="left")
            table.add_column("key", overflow="fold")
            for heading in ("rows", "bytes", "partition"):
                table.add_column(heading, justify="right")
            table.add_column("oldest (UTC)", no_wrap=True)
            heaviest = (
                read_state(lake, store)
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


@app.command("read", epilog="Example:  adloom state read user_status --lake lake --where \"key.user_id = 'u-000004'\"")
def read(
    query: _Query,
    location: LakeOption,
    where: Annotated[
        str | None, typer.Option(help="SQL condition over key, value, partition_id, bytes and oldest.", metavar="SQL")
    ] = None,
    limit: _Limit = 20,
    config: ConfigOption = None,
) -> None:
    """Show entries of the state, key and value as JSON."""
    from pyspark.sql import functions as F

    from spark_jobs.streams.state_reader import find_stores, read_state

    _check([query])
    with _open(location, config) as (console, lake):
        for store in find_stores(lake, [query]):
            rows = read_state(lake, store)
            chosen = rows.where(where) if where else rows
            console.print(Text.assemble((f"{query}, {store.name}", "bold"), f" after batch {store.batch}"))
            shown = chosen.select("partition_id", F.to_json("key").alias("key"), F.to_json("value").alias("value"))
            for row in shown.orderBy("key").limit(limit).collect():
                console.out(f"  {row['partition_id']}  {row['key']}  {row['value']}")


def _spread(parts: "list[Part]") -> list[str]:
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


@contextmanager
def _open(location: str, config: Path | None) -> "Iterator[tuple[Console, OpenLake]]":
    console, settings = terminal(is_uncut=True), load_settings(config, os.environ)
    lake = open_existing(location, settings.s3)
    with session(console, settings, lake) as opened:
        yield console, opened


def _check(queries: list[str]) -> None:
    for query in queries:
        if query not in _STATEFUL:
            raise SettingsError(f"no query {query!r} keeps state; those that do: {', '.join(_STATEFUL)}")


def _time(us: int | None) -> str:
    return "" if us is None else utc(datetime.fromtimestamp(us / 1e6, tz=UTC))
