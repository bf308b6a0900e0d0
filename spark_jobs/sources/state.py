"""The state of a query as Spark keeps it in a checkpoint: read by Spark's state data source, which writes nothing.

A checkpoint of a running query may be read: what is read is the state after its last batch.
"""

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, LongType, StructType, TimestampType

from spark_jobs.contracts.lake import Lake, checkpoint_key
from spark_jobs.contracts.spark_names import STATE_VALUE

_JOIN, _KEYED = "symmetricHashJoin", "transformWithState"
_SIDES = ("left", "right")
_TIMES_IN_US = ("expiresAtMicros", "last_us", "times", "waiting", "waiting_times")
"""Numbers in states that are times, in microseconds since 1970."""


@dataclass(frozen=True)
class Store:
    """A part of the state of a query.

    Attributes:
        query: its name.
        operator_id: number of the stateful operator in the query, from its end.
        operator: Spark's name of it.
        side: of a join, ``left`` or ``right``; else empty.
        batch: the last batch whose state there is.
    """

    query: str
    operator_id: int
    operator: str
    side: str
    batch: int

    @property
    def name(self) -> str:
        """As people tell it from the others of its query."""
        return f"{self.operator_id} {self.operator}{f' {self.side}' if self.side else ''}"


def find_stores(spark: SparkSession, lake: Lake, query: str) -> list[Store]:
    """The parts of the state of ``query`` in the checkpoint in use; none if it has not ended a batch."""
    checkpoint = checkpoint_key(query, lake.version(query))
    if not any(name.isdigit() for name in lake.files.names(f"{checkpoint}/commits")):
        return []
    # Whoever reads a state asks a part of Spark for it that is there once the session knows of streams.
    _ = spark.streams.active
    found = spark.read.format("state-metadata").load(lake.uri(checkpoint))
    operators = (
        found.groupBy("operatorId", "operatorName").agg(F.max("maxBatchId").alias("batch")).orderBy("operatorId")
    )
    stores = []
    for row in operators.collect():
        for side in _SIDES if row["operatorName"].startswith(_JOIN) else ("",):
            name = row["operatorName"].removesuffix("Exec")
            stores.append(Store(query, row["operatorId"], name, side, row["batch"]))
    return stores


def read_state(spark: SparkSession, lake: Lake, store: Store) -> DataFrame:
    """The entries of ``store``.

    Returns:
        ``key`` and ``value`` (structs), ``partition_id``; ``bytes``, the length of both as JSON: a measure of weight,
        not what they take on disk; ``oldest``, the earliest time in them, null where there is none.
    """
    reader = spark.read.format("statestore").option("operatorId", store.operator_id).option("batchId", store.batch)
    if store.side:
        reader = reader.option("joinSide", store.side)
    if store.operator.startswith(_KEYED):
        reader = reader.option("stateVarName", STATE_VALUE)
    rows = reader.load(lake.uri(checkpoint_key(store.query, lake.version(store.query))))
    if store.side:
        # A join keeps a field more than it tells of: whether the row has met another.
        named = [F.col("value")[name].alias(name) for name in rows.select("value.*").columns]
        rows = rows.withColumn("value", F.struct(*named))
    schema = rows.schema
    times = [*_times(schema["value"].dataType, F.col("value")), *_times(schema["key"].dataType, F.col("key"))]
    oldest = F.least(*times) if len(times) > 1 else times[0] if times else F.lit(None).cast("timestamp")
    weight = F.length(F.to_json(F.struct("key", "value")))
    return rows.select("key", "value", "partition_id", weight.alias("bytes"), oldest.alias("oldest"))


def _times(kind: DataType, column: Column) -> list[Column]:
    """The times in a struct, those of inner structs included."""
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
            # 0 stands for none.
            found.append(F.timestamp_micros(F.when(inner > 0, inner)))
    return found
