"""The state of queries, read from their checkpoints; nothing is written.

The query may be running: its state after the last batch is read.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from urllib.parse import quote

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, LongType, StructType, TimestampType

from spark_jobs.errors import CheckpointError
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.store.files import hadoop_uri
from spark_jobs.queries.places import checkpoint_batches, checkpoint_in_use, checkpoint_key
from spark_jobs.spark.names import STATE_VALUE
from spark_jobs.spark.open_lake import OpenLake

_JOIN, _KEYED = "symmetricHashJoin", "transformWithState"
_SIDES = ("left", "right")
_LINKS: dict[str, TemporaryDirectory[str]] = {}
"""By URI of a checkpoint, the folder of the link to it; removed when the process ends."""
_TIMES_IN_US = ("expiresAtMicros", "last_us", "times", "waiting", "waiting_times")
"""Fields of states that hold times as numbers, in microseconds since 1970."""


@dataclass(frozen=True)
class Store:
    """The state of one stateful operator of a query, or of one side of a join.

    Attributes:
        query: its name.
        operator_id: number of the operator in the query, counted from the end of the query.
        operator: Spark's name for it.
        side: of a join, ``left`` or ``right``; otherwise empty.
        batch: the last batch whose state is there.
    """

    query: str
    operator_id: int
    operator: str
    side: str
    batch: int

    @property
    def name(self) -> str:
        """For people, unique within the query."""
        return f"{self.operator_id} {self.operator}{f' {self.side}' if self.side else ''}"


class Part(NamedTuple):
    """The content of a store in one partition: entries, their length as JSON in bytes, their earliest time.

    The time is in microseconds since 1970; None if the entries have no times.
    """

    partition: int
    rows: int
    bytes: int
    oldest_us: int | None


def find_stores(lake: Lake, queries: Iterable[str]) -> list[Store]:
    """The stores of ``queries`` in the checkpoints in use; a query that has completed no batch has none.

    Read from the files that Spark keeps about its operators: its own reader of them takes a Spark job per query.
    """
    return [store for query in queries for store in _stores(lake, query)]


def _stores(lake: Lake, query: str) -> Iterator[Store]:
    version = checkpoint_in_use(lake, query)
    batches, folder = checkpoint_batches(lake, query, version, "commits"), f"{checkpoint_key(query, version)}/state"
    if not batches:
        return
    for operator_id in lake.numbers(folder):
        operator = _operator(lake, f"{folder}/{operator_id}/_metadata")
        for side in _SIDES if operator.startswith(_JOIN) else ("",):
            yield Store(query, operator_id, operator, side, batches[-1])


def _operator(lake: Lake, folder: str) -> str:
    """Spark's name for the operator that ``folder`` describes.

    Raises:
        CheckpointError: the description is missing or damaged.
    """
    # Operators whose state may change its schema have a description per such change.
    changes = lake.numbers(f"{folder}/v2")
    key = f"{folder}/v2/{changes[-1]}" if changes else f"{folder}/metadata"
    try:
        _version, description = (lake.files.read(key) or b"").decode().split("\n", 1)
        return str(json.loads(description)["operatorInfo"]["operatorName"]).removesuffix("Exec")
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(
            f"{lake.shown(key)} does not describe an operator of a query ({error!r}): the checkpoint is damaged, or "
            "from another version of Spark; `adloom checkpoints reset` creates a new one"
        ) from error


def weigh(lake: OpenLake, stores: list[Store]) -> dict[Store, list[Part]]:
    """The content of each of ``stores``, by partition; empty partitions are left out."""
    if not stores:
        return {}
    # All in one job: on a small machine a job for each store takes longer than what it reads.
    parts = [
        read_state(lake, store)
        .groupBy(F.lit(number).alias("store"), "partition_id")
        .agg(
            F.count("*").alias("rows"), F.sum("bytes").alias("bytes"), F.unix_micros(F.min("oldest")).alias("oldest_us")
        )
        for number, store in enumerate(stores)
    ]
    found: dict[Store, list[Part]] = {store: [] for store in stores}
    for number, *part in reduce(DataFrame.unionAll, parts).collect():
        found[stores[number]].append(Part(*part))
    return found


def read_state(lake: OpenLake, store: Store) -> DataFrame:
    """The entries of ``store``.

    Returns:
        ``key`` and ``value`` (structs), ``partition_id``; ``bytes``, the length of both as JSON, to compare entries by,
        not their size on disk; ``oldest``, the earliest time in them, null if they have none.
    """
    # Reading a state needs a part of Spark that exists only once the session has been asked for its streams.
    _ = lake.spark.streams.active
    reader = lake.spark.read.format("statestore").option("operatorId", store.operator_id).option("batchId", store.batch)
    if store.side:
        reader = reader.option("joinSide", store.side)
    if store.operator.startswith(_KEYED):
        reader = reader.option("stateVarName", STATE_VALUE)
    rows = reader.load(_location(lake, checkpoint_key(store.query, checkpoint_in_use(lake, store.query))))
    if store.side:
        # The stored value has one field more than its schema says: whether the row has been matched.
        named = [F.col("value")[name].alias(name) for name in rows.select("value.*").columns]
        rows = rows.withColumn("value", F.struct(*named))
    schema = rows.schema
    times = [*_times(schema["value"].dataType, F.col("value")), *_times(schema["key"].dataType, F.col("key"))]
    oldest = F.least(*times) if len(times) > 1 else times[0] if times else F.lit(None).cast("timestamp")
    weight = F.length(F.to_json(F.struct("key", "value")))
    return rows.select("key", "value", "partition_id", weight.alias("bytes"), oldest.alias("oldest"))


def _location(lake: Lake, key: str) -> str:
    """The URI of the checkpoint at ``key``, as Spark's state reader takes it.

    The reader escapes a location and does not unescape it, so a folder with a space in its name is read through a link.
    """
    uri = lake.uri(key)
    if not lake.is_local or quote(uri, safe="/:") == uri:
        return uri
    if uri not in _LINKS:
        _LINKS[uri] = TemporaryDirectory(prefix="adloom-link-")
        (Path(_LINKS[uri].name) / "checkpoint").symlink_to(lake.path / key)
    return hadoop_uri(Path(_LINKS[uri].name) / "checkpoint")


def _times(kind: DataType, column: Column) -> list[Column]:
    """The times in a struct, including those of nested structs."""
    if not isinstance(kind, StructType):
        return []
    found: list[Column] = []
    for field in kind.fields:
        inner = column[field.name]
        if isinstance(field.dataType, StructType):
            found += _times(field.dataType, inner)
        elif isinstance(field.dataType, TimestampType):
            found.append(inner)
        elif field.name in _TIMES_IN_US and isinstance(field.dataType, ArrayType):
            found.append(F.timestamp_micros(F.array_min(inner)))
        elif field.name in _TIMES_IN_US and isinstance(field.dataType, LongType):
            # 0 means none.
            found.append(F.timestamp_micros(F.when(inner > 0, inner)))
    return found
