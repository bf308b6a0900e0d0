"""The job ``deduplicate``: records in, judged into bronze, each event once into silver; and the heartbeats."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from spark_jobs.contracts.events import HEARTBEAT, OK
from spark_jobs.contracts.lake import Lake
from spark_jobs.contracts.settings import Settings
from spark_jobs.contracts.tables import BRONZE_EVENTS, SILVER_EVENTS
from spark_jobs.operators.deduplicate import deduplicate
from spark_jobs.sinks.delta import append_rows, create_table, start_query
from spark_jobs.sources.delta import stream_table
from spark_jobs.sources.files import read_files
from spark_jobs.transforms.validate import judge

JOB = "deduplicate"
INGEST_QUERY = "ingest"
DEDUPLICATE_QUERY = "deduplicate"


def start_ingest(
    spark: SparkSession, settings: Settings, lake: Lake, source: Path, *, before_batch: Callable[[], None]
) -> StreamingQuery:
    """Starts reading the files of ``source`` into bronze; ends by itself once all that are there now are read.

    Raises:
        SourceError: there is nothing to read.
    """
    records = read_files(spark, source, settings.ingest)
    return start_query(
        judge(records, settings.ingest),
        lake,
        BRONZE_EVENTS,
        job=JOB,
        query=INGEST_QUERY,
        available_now=True,
        before_batch=before_batch,
    )


def start_deduplicate(
    spark: SparkSession, settings: Settings, lake: Lake, *, before_batch: Callable[[], None]
) -> StreamingQuery:
    """Starts carrying each good event of bronze into silver, once."""
    create_table(spark, lake, BRONZE_EVENTS)
    good = stream_table(spark, lake, BRONZE_EVENTS).where(F.col("verdict") == OK).drop("raw", "source", "verdict")
    events = deduplicate(good, settings.deduplicate).withColumn("event_date", F.to_date("event_time"))
    return start_query(events, lake, SILVER_EVENTS, job=JOB, query=DEDUPLICATE_QUERY, before_batch=before_batch)


def append_heartbeat(spark: SparkSession, lake: Lake, event_time: datetime, event_id: str) -> None:
    """Appends a heartbeat at ``event_time`` (UTC) to silver, unless the one with this ``event_id`` was before.

    Must be called while the query ``deduplicate`` is not running: silver has one writer.
    """
    beat = {"event_type": F.lit(HEARTBEAT), "event_id": F.lit(event_id), "event_time": F.lit(event_time)}
    beat |= {"ingest_time": F.current_timestamp(), "event_date": F.to_date(F.lit(event_time)), "is_last": F.lit(False)}
    row = spark.range(1).select(
        *[
            beat.get(column.name, F.lit(None)).cast(column.sql_type).alias(column.name)
            for column in SILVER_EVENTS.columns
        ]
    )
    append_rows(row, lake, SILVER_EVENTS, writer=f"heartbeat {event_id}", batch_id=0)
