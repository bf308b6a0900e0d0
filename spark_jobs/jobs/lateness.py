"""Which events were late, found from what has been read since the last repair; so the cost follows what is new."""

from datetime import UTC, datetime, time, timedelta

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.contracts.choices import DeduplicateMode
from spark_jobs.contracts.sections import DeduplicateSettings
from spark_jobs.contracts.settings import Settings
from spark_jobs.contracts.tables import BRONZE_EVENTS, LATE_EVENTS, SILVER_EVENTS
from spark_jobs.corrections.correction import dates_within
from spark_jobs.jobs.arrivals import rows_added
from spark_jobs.lake.layout import Lake
from spark_jobs.sources.delta import read_table
from spark_jobs.transforms.late import (
    WATERMARK,
    Span,
    as_silver,
    behind,
    first_of_each,
    is_expired,
    late_in_silver,
    not_kept,
)
from spark_jobs.transforms.open_rows import KEY

IS_EXPIRED = "is_expired"


def new_late_events(
    spark: SparkSession, settings: Settings, lake: Lake, spans: list[Span], silver: DataFrame
) -> DataFrame | None:
    """The events that ``deduplicate`` dropped as late in ``spans``, each once; None: it can have dropped none.

    Args:
        spark: the session.
        settings: how late an event may be.
        lake: the lake.
        spans: batches of ``deduplicate``.
        silver: what it had written then.

    Returns:
        The columns of ``silver/events``, ``cause`` and ``is_expired``.
    """
    if not any(span.watermark_ms for span in spans):
        return None
    dropped = first_of_each(as_silver(behind(rows_added(spark, lake, BRONZE_EVENTS, spans), spans))).persist()
    late = not_kept(dropped, copies_near(dropped, silver, settings.deduplicate))
    if lake.has(LATE_EVENTS):
        known = copies_near(dropped, read_table(spark, lake, LATE_EVENTS), settings.deduplicate)
        late = late.join(known.select(*KEY), on=list(KEY), how="left_anti")
    return late.withColumn(IS_EXPIRED, is_expired(settings.repair.horizon)).drop(WATERMARK)


def copies_near(events: DataFrame, rows: DataFrame, settings: DeduplicateSettings) -> DataFrame:
    """Those of ``rows`` that may be copies of ``events``: both have ``event_date`` and ``event_time``.

    ``deduplicate`` knows a copy for as long as its watermark, or for ever; beyond that, two events share a name. So
    only the dates of ``events`` and those next to them are read.
    """
    if settings.mode is DeduplicateMode.FOREVER:
        return rows
    dates = dates_within(events, settings.watermark)
    if not dates:
        return rows.limit(0)
    # By the date, silver has partitions; by the time, other tables have statistics.
    begin, end = (datetime.combine(day, time(), UTC) for day in (dates[0], dates[-1] + timedelta(days=1)))
    is_near = F.col("event_time").between(F.lit(begin), F.lit(end))
    return rows.where(is_near & F.col("event_date").isin(dates))


def late_for(spark: SparkSession, lake: Lake, spans: list[Span]) -> DataFrame | None:
    """The events of silver that a query can have dropped as late in ``spans``; None: none.

    Returns:
        The columns of ``silver/events``, and ``cause``.
    """
    if not any(span.watermark_ms for span in spans):
        return None
    return late_in_silver(behind(rows_added(spark, lake, SILVER_EVENTS, spans), spans))


def replaced(
    spark: SparkSession,
    settings: Settings,
    lake: Lake,
    spans: list[Span],
    silver: DataFrame,
    late: DataFrame,
    fresh: DataFrame | None,
) -> DataFrame:
    """Copies in silver that a late event replaces, because it was received first.

    Args:
        spark: the session.
        settings: how long copies are known.
        lake: the lake.
        spans: what a query has read of silver since the last repair.
        silver: all that it has read.
        late: all events of ``silver/late_events``.
        fresh: those that are new there; None: none.

    Returns:
        The columns of ``silver/events``, and ``cause``.
    """
    keys = late.select(*KEY)
    found = []
    if spans:
        found.append(rows_added(spark, lake, SILVER_EVENTS, spans).join(keys, on=list(KEY), how="left_semi"))
    if fresh is not None:
        near = copies_near(fresh, silver, settings.deduplicate)
        found.append(near.join(fresh.select(*KEY), on=list(KEY), how="left_semi"))
    rows = found[0] if len(found) == 1 else found[0].unionByName(found[1], allowMissingColumns=True)
    return late_in_silver(rows)
