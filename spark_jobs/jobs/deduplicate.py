"""The job ``deduplicate``: records in, judged into bronze, each event once into silver; and the heartbeats."""

from contextlib import nullcontext
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from spark_jobs.contracts.commits import CommitNote
from spark_jobs.contracts.events import HEARTBEAT, OK
from spark_jobs.contracts.jobs import DEDUPLICATE, INGEST
from spark_jobs.contracts.lake import Lake
from spark_jobs.contracts.progress import OBSERVED, QUARANTINED
from spark_jobs.contracts.settings import Settings
from spark_jobs.contracts.tables import BRONZE_EVENTS, SILVER_EVENTS
from spark_jobs.operators.deduplicate import deduplicate
from spark_jobs.sinks.delta import ASAP, AVAILABLE_NOW, Start, Within, append_rows, start_query
from spark_jobs.sources.delta import stream_table
from spark_jobs.transforms.validate import judge


def start_ingest(
    records: DataFrame,
    settings: Settings,
    lake: Lake,
    *,
    start: Start = AVAILABLE_NOW,
    within: Within = nullcontext,
    version: int | None = None,
) -> StreamingQuery:
    """Starts judging ``records`` (see :mod:`spark_jobs.sources`) into bronze; ``version`` is of its checkpoint."""
    quarantined = F.count(F.when(F.col("verdict") != OK, True)).alias(QUARANTINED)
    judged = judge(records, settings.ingest).observe(OBSERVED, quarantined)
    return start_query(judged, lake, BRONZE_EVENTS, query=INGEST, start=start, within=within, version=version)


def start_deduplicate(
    spark: SparkSession, settings: Settings, lake: Lake, *, start: Start = ASAP, within: Within = nullcontext
) -> StreamingQuery:
    """Starts carrying each good event of bronze, which must have been begun, into silver, once."""
    good = good_events(stream_table(spark, lake, BRONZE_EVENTS))
    events = deduplicate(good, settings.deduplicate).withColumn("event_date", F.to_date("event_time"))
    return start_query(events, lake, SILVER_EVENTS, query=DEDUPLICATE, start=start, within=within)


def good_events(bronze: DataFrame) -> DataFrame:
    """Those rows of bronze that are events, with the columns of one."""
    return bronze.where(F.col("verdict") == OK).drop("raw", "source", "verdict")


def append_heartbeat(
    spark: SparkSession, lake: Lake, event_time: datetime, event_id: str, *, writer: str, number: int
) -> None:
    """Appends a heartbeat at ``event_time`` (with zone) to silver, unless ``writer`` has appended this ``number``.

    Must be called while no batch of the query ``deduplicate`` is being written: silver has one writer.
    """
    beat = {"event_type": F.lit(HEARTBEAT), "event_id": F.lit(event_id), "event_time": F.lit(event_time)}
    beat |= {"ingest_time": F.current_timestamp(), "event_date": F.to_date(F.lit(event_time)), "is_last": F.lit(False)}
    row = spark.range(1).select(
        *[
            beat.get(column.name, F.lit(None)).cast(column.sql_type).alias(column.name)
            for column in SILVER_EVENTS.columns
        ]
    )
    append_rows(row, lake, SILVER_EVENTS, CommitNote(writer=writer, batch=number))
