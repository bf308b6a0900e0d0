"""Late events, found by comparing rows with the watermark under which they were read."""

from collections.abc import Sequence
from datetime import timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.config.durations import microseconds
from spark_jobs.contract.events import HEARTBEAT, OK
from spark_jobs.contract.tables import BRONZE_EVENTS, SILVER_EVENTS
from spark_jobs.lake.log import BatchSpan
from spark_jobs.restatements.plan import Cause

CAUSE = "cause"
WATERMARK = "watermark"
"""Column: the watermark that an event was behind."""


def behind(rows: DataFrame, spans: Sequence[BatchSpan]) -> DataFrame:
    """The ``rows`` that were behind the watermark when they were read: all that a query dropped as late, and more.

    Args:
        rows: with ``event_time`` and ``ingest_time``.
        spans: the batches that read them.

    Returns:
        The columns of ``rows``, and ``watermark``.
    """
    # The newest watermark alone lets files be skipped.
    newest = F.timestamp_millis(F.lit(max(span.watermark_ms for span in spans)))
    old = rows.where(F.col("event_time") <= newest)
    return with_watermark(old, spans).where(F.col("event_time") <= F.col(WATERMARK))


def with_watermark(rows: DataFrame, spans: Sequence[BatchSpan]) -> DataFrame:
    """The ``rows`` that were read in ``spans``, with the ``watermark`` of their batch.

    A row that several of them may have read gets the newest of their watermarks.
    """
    batches = rows.sparkSession.createDataFrame(
        [(*span.received, span.watermark_ms) for span in spans if span.received], "first_us LONG, last_us LONG, ms LONG"
    )
    # A batch has few distinct times, so these are compared with spans instead of each row.
    times = rows.select("ingest_time").distinct()
    is_of = F.unix_micros("ingest_time").between(F.col("first_us"), F.col("last_us"))
    found = times.join(F.broadcast(batches), on=is_of, how="inner").groupBy("ingest_time").agg(F.max("ms").alias("ms"))
    known = found.select("ingest_time", F.timestamp_millis("ms").alias(WATERMARK))
    return rows.join(F.broadcast(known), on="ingest_time")


def as_silver(bronze: DataFrame) -> DataFrame:
    """The events of ``bronze`` with the columns of ``silver/events``, ``source`` and ``cause``.

    And ``watermark``, if ``bronze`` has it.
    """
    names = [name for name in SILVER_EVENTS.column_names if name != "event_date"]
    cause = F.when(F.col("requeued_from").isNotNull(), F.lit(Cause.REQUEUE.value)).otherwise(_cause_of_type())
    return bronze.where(F.col("verdict") == OK).select(
        *names,
        F.to_date("event_time").alias("event_date"),
        *[name for name in BRONZE_EVENTS.kept(bronze.columns) if name != WATERMARK],
        "source",
        cause.alias(CAUSE),
        *[name for name in (WATERMARK,) if name in bronze.columns],
    )


def late_in_silver(silver: DataFrame) -> DataFrame:
    """The rows of ``silver`` that are events, with ``cause``."""
    return silver.where(F.col("event_type") != HEARTBEAT).withColumn(CAUSE, _cause_of_type()).drop(WATERMARK)


def is_expired(horizon: timedelta) -> Column:
    """Whether an event (with its ``watermark``) came too long after its time to correct anything."""
    return F.unix_micros(WATERMARK) - F.unix_micros("event_time") > microseconds(horizon)


def _cause_of_type() -> Column:
    return F.concat(F.lit("late_"), F.col("event_type"))
