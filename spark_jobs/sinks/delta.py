"""Appending to the Delta tables of the lake, each batch exactly once."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from pyspark.sql import DataFrame, DataFrameWriter, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from spark_jobs.contracts.choices import Trigger
from spark_jobs.contracts.durations import milliseconds
from spark_jobs.contracts.jobs import JOB_OF_QUERY
from spark_jobs.contracts.lake import Lake
from spark_jobs.contracts.settings import JobSettings
from spark_jobs.contracts.tables import Table

_PROPERTIES = {
    # Validation reads what is new since the last validated version; for appends the feed costs nothing.
    "delta.enableChangeDataFeed": "true",
}
_LATEST_COMMITS = 20
Start = Mapping[str, Any]
"""When a query starts its batches, as Spark's ``trigger`` takes it."""
AVAILABLE_NOW: Start = {"availableNow": True}
"""To the end of what the source holds now; then the query ends."""
ASAP: Start = {"processingTime": "200 milliseconds"}
"""One batch after the other; so often a query that has nothing to do looks for new versions of its source."""

Within = Callable[[], AbstractContextManager[object]]
"""What a batch is written within: made anew for each."""


def start_of(settings: JobSettings) -> Start:
    """What the setting ``job.trigger`` asks for."""
    interval: Start = {"processingTime": f"{milliseconds(settings.trigger_interval)} milliseconds"}
    return {Trigger.AVAILABLE_NOW: AVAILABLE_NOW, Trigger.ASAP: ASAP, Trigger.INTERVAL: interval}[settings.trigger]


def create_table(spark: SparkSession, lake: Lake, table: Table) -> None:
    """Begins ``table`` in ``lake`` where it does not exist."""
    if not lake.has(table):
        nothing = spark.range(0).select(*[F.lit(None).cast(c.sql_type).alias(c.name) for c in table.columns])
        _writer(nothing, table).save(lake.table(table))


def append_rows(rows: DataFrame, lake: Lake, table: Table, *, writer: str, batch_id: int) -> None:
    """Appends ``rows`` to ``table``, unless ``writer`` has already committed a batch of this number or a later one.

    Begins the table where it does not exist. The commit bears ``<writer> <batch_id>`` as its user metadata.
    """
    once = _writer(rows, table).option("txnAppId", writer).option("txnVersion", batch_id)
    once.option("userMetadata", f"{writer} {batch_id}").save(lake.table(table))


def has_committed(spark: SparkSession, lake: Lake, table: Table, *, writer: str, batch_id: int) -> bool:
    """Whether one of the latest commits of ``table`` is batch ``batch_id`` of ``writer``."""
    if not lake.has(table):
        return False
    commits = spark.sql(f"DESCRIBE HISTORY delta.`{lake.table(table)}` LIMIT {_LATEST_COMMITS}").collect()
    return any(commit.userMetadata == f"{writer} {batch_id}" for commit in commits)


def _writer(rows: DataFrame, table: Table) -> DataFrameWriter:
    properties = {**_PROPERTIES, "delta.dataSkippingStatsColumns": ",".join(table.stats_columns)}
    # Without Spark's mark on the event-time column, which would go into the table and give its readers a watermark.
    plain = rows.select(*[F.col(name).alias(name, metadata={}) for name in table.column_names])
    appending = plain.write.format("delta").mode("append")
    return appending.partitionBy(*table.partition_by).options(**properties)


def start_query(
    rows: DataFrame,
    lake: Lake,
    table: Table,
    *,
    query: str,
    start: Start = ASAP,
    within: Within = nullcontext,
) -> StreamingQuery:
    """Starts the streaming query that appends ``rows`` to ``table``.

    Args:
        rows: a streaming DataFrame with the columns of ``table``.
        lake: where the table and the checkpoint lie.
        table: the output; begun where it does not exist.
        query: name of the query, one of those in :data:`spark_jobs.contracts.jobs.JOB_OF_QUERY`, and of its checkpoint.
        start: when its batches start.
        within: gives a context manager, within which a batch is written.
    """
    spark = rows.sparkSession
    is_first = True

    def write(batch: DataFrame, batch_id: int) -> None:
        with within():
            write_once(batch, batch_id)

    def write_once(batch: DataFrame, batch_id: int) -> None:
        nonlocal is_first
        # The id of the query lies in its checkpoint, so a new checkpoint does not find its batches already written.
        (query_id,) = (active.id for active in spark.streams.active if active.name == query)
        # Only the first batch after a start can be one that a crash kept Spark from noting. Its rows are there, but it
        # must run all the same: from its rows Spark takes the watermark of the next batch.
        if is_first and has_committed(spark, lake, table, writer=query_id, batch_id=batch_id):
            batch.write.format("noop").mode("overwrite").save()
        else:
            append_rows(batch, lake, table, writer=query_id, batch_id=batch_id)
        is_first = False

    writer = rows.writeStream.queryName(query).foreachBatch(write)
    writer = writer.option("checkpointLocation", lake.checkpoint(JOB_OF_QUERY[query], query))
    return writer.trigger(**start).start()
