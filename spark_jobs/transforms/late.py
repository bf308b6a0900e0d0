"""Events that came too late, found from what was read under which watermark."""

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as Over
from pyspark.sql import functions as F

from spark_jobs.contracts.durations import microseconds
from spark_jobs.contracts.events import HEARTBEAT, OK
from spark_jobs.contracts.repair import Cause
from spark_jobs.contracts.tables import BRONZE_EVENTS, SILVER_EVENTS
from spark_jobs.transforms.open_rows import KEY

CAUSE = "cause"
WATERMARK = "watermark"
"""The column with the watermark that an event lay behind."""


class Span(NamedTuple):
    """Versions of a table that a query read in one batch, ``first`` to ``last``, and its watermark in milliseconds.

    ``received``: the first and the last ``ingest_time`` of their rows (microseconds since 1970); None: they have none.
    """

    first: int
    last: int
    watermark_ms: int
    received: tuple[int, int] | None = None


def behind(rows: DataFrame, spans: Sequence[Span]) -> DataFrame:
    """Those of ``rows`` that lay behind the watermark when they were read: all that a query dropped as late, and more.

    Args:
        rows: with ``event_time`` and ``ingest_time``.
        spans: the batches. A row that may have been read in several is held to the newest watermark of them.

    Returns:
        The columns of ``rows``, and ``watermark``.
    """
    # The newest watermark alone lets files be skipped.
    newest = F.timestamp_millis(F.lit(max(span.watermark_ms for span in spans)))
    old = rows.where(F.col("event_time") <= newest)
    batches = rows.sparkSession.createDataFrame(
        [(*span.received, span.watermark_ms) for span in spans if span.received], "first_us LONG, last_us LONG, ms LONG"
    )
    # A batch has few times of its own, so these are compared with spans, and not each row.
    times = old.select("ingest_time").distinct()
    is_of = F.unix_micros("ingest_time").between(F.col("first_us"), F.col("last_us"))
    found = times.join(F.broadcast(batches), on=is_of, how="inner").groupBy("ingest_time").agg(F.max("ms").alias("ms"))
    known = found.select("ingest_time", F.timestamp_millis("ms").alias(WATERMARK))
    return old.join(F.broadcast(known), on="ingest_time").where(F.col("event_time") <= F.col(WATERMARK))


def as_silver(bronze: DataFrame) -> DataFrame:
    """The events of ``bronze`` with the columns of ``silver/events``, ``source`` and ``cause``.

    And ``watermark``, if ``bronze`` comes from :func:`behind`.
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


def first_of_each(events: DataFrame) -> DataFrame:
    """The first of ``events`` (with ``ingest_time`` and ``source``) of each key, without ``source``."""
    arrival = Over.partitionBy(*KEY).orderBy("ingest_time", *_place())
    numbered = events.withColumn("arrival", F.row_number().over(arrival))
    return numbered.where(F.col("arrival") == 1).drop("arrival", "source")


def not_kept(events: DataFrame, silver: DataFrame) -> DataFrame:
    """Those of ``events`` that ``silver`` does not have, or has by a copy that came later."""
    kept = silver.select(*KEY, F.col("ingest_time").alias("kept_time"))
    known = kept.join(events.select(*KEY), on=list(KEY), how="left_semi")
    first = known.groupBy(*KEY).agg(F.min("kept_time").alias("kept_time"))
    joined = events.join(first, on=list(KEY), how="left")
    return joined.where(F.col("kept_time").isNull() | (F.col("kept_time") > F.col("ingest_time"))).drop("kept_time")


def late_in_silver(silver: DataFrame) -> DataFrame:
    """The rows of ``silver`` that are events, with their ``cause``."""
    return silver.where(F.col("event_type") != HEARTBEAT).withColumn(CAUSE, _cause_of_type()).drop(WATERMARK)


def is_expired(horizon: timedelta) -> Column:
    """Whether an event (with its ``watermark``) came so long after its time that it corrects nothing."""
    return F.unix_micros(WATERMARK) - F.unix_micros("event_time") > microseconds(horizon)


def _place() -> tuple[Column, Column]:
    """Where ``source`` says that a record lay, to sort by: its partition or file, and its offset there as a number."""
    parts = r"^(.*)(?:/|#bytes=)(\d+)(?:-\d+)?$"
    return F.regexp_extract("source", parts, 1), F.regexp_extract("source", parts, 2).try_cast("bigint")


def _cause_of_type() -> Column:
    return F.concat(F.lit("late_"), F.col("event_type"))
