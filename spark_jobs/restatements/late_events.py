"""Late events, found by comparing rows with the watermark under which they were read."""

from collections.abc import Sequence
from datetime import UTC, datetime, time, timedelta
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.config.durations import microseconds, time_of_us
from spark_jobs.config.sections import DeduplicateSettings
from spark_jobs.config.settings import Settings
from spark_jobs.contract.events import HEARTBEAT, KEY
from spark_jobs.contract.tables import BRONZE_EVENTS, LATE_EVENTS, SILVER_EVENTS
from spark_jobs.lake.batch import EVER_US
from spark_jobs.lake.log import BatchSpan
from spark_jobs.queries.arrivals import rows_added
from spark_jobs.queries.facts import IS_EXPIRED, as_silver
from spark_jobs.queries.identity import COPY, IS_KEPT, delay_of, first_of_each, replaced_in, with_kept
from spark_jobs.restatements.plan import Cause
from spark_jobs.spark.columns import dates_within
from spark_jobs.spark.open_lake import OpenLake

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


def late_in_silver(silver: DataFrame) -> DataFrame:
    """The rows of ``silver`` that are events, with ``cause``."""
    return silver.where(F.col("event_type") != HEARTBEAT).withColumn(CAUSE, _cause_of_type()).drop(WATERMARK)


def is_expired(horizon: timedelta) -> Column:
    """Whether an event (with its ``watermark``) came too long after its time to correct anything."""
    return F.unix_micros(WATERMARK) - F.unix_micros("event_time") > microseconds(horizon)


def _cause_of_type() -> Column:
    return F.concat(F.lit("late_"), F.col("event_type"))


def new_late_events(lake: OpenLake, spans: list[BatchSpan], silver: DataFrame) -> DataFrame | None:
    """The events that ``deduplicate`` read in ``spans`` and that silver lacks, each once; None: it read no rows.

    ``deduplicate`` dropped them as late, or as copies of an event further away than its watermark: while Spark
    remembers an id, it compares no times.

    Args:
        lake: the lake.
        spans: batches of ``deduplicate``.
        silver: what it had written by then.

    Returns:
        The columns of ``silver/events``, ``cause`` and ``is_expired``.
    """
    read = [span.received for span in spans if span.received]
    if not read:
        return None
    late = lake.read(LATE_EVENTS) if lake.has(LATE_EVENTS) else None
    cause = F.when(F.col("requeued_from").isNotNull(), F.lit(Cause.REQUEUE.value)).otherwise(_cause_of_type())
    added = with_watermark(rows_added(lake, BRONZE_EVENTS, spans), spans)
    records = as_silver(added, cause.alias(CAUSE))
    # A cleaned log no longer says when its rows came: their range has no end, and so no latest time.
    begin, end = min(first for first, _ in read), max(last for _, last in read)
    kept = silver.where(F.col("ingest_time") >= F.lit(time_of_us(begin)))
    if end < EVER_US:
        kept = kept.where(F.col("ingest_time") <= F.lit(time_of_us(end)))
    records = with_kept(records, kept)
    lacking = records.where(~F.col(IS_KEPT))
    if late is not None:
        lacking = lacking.join(late.select(*COPY), on=list(COPY), how="left_anti")
    lacking = lacking.persist()
    found = first_of_each(_of_ids(lacking, records, silver, late, lake.settings), delay_of(lake.settings.deduplicate))
    new = found.join(lacking.select(*COPY).distinct(), on=list(COPY), how="left_semi")
    return new.withColumn(IS_EXPIRED, is_expired(lake.settings.repair.horizon)).drop(WATERMARK)


def _of_ids(
    lacking: DataFrame, records: DataFrame, silver: DataFrame, late: DataFrame | None, settings: Settings
) -> DataFrame:
    """The records that decide whether ``lacking`` ones are copies: the others with their ids, earlier ones too."""
    ids = lacking.select(*KEY).distinct()
    own = records.join(ids, on=list(KEY), how="left_semi")
    # New rows of silver are taken from the records, which have their place in the source.
    earlier = copies_near(lacking, silver, settings.deduplicate).join(ids, on=list(KEY), how="left_semi")
    earlier = earlier.join(own.select(*COPY), on=list(COPY), how="left_anti")
    parts = [(own, False), (earlier, False)]
    if late is not None:
        parts.append((copies_near(lacking, late, settings.deduplicate).join(ids, on=list(KEY), how="left_semi"), True))
    marked = [rows.withColumn("is_known", F.lit(is_known)) for rows, is_known in parts]
    columns = marked[0].columns
    cut = [rows.select(*[name for name in columns if name in rows.columns]) for rows in marked]
    return reduce(lambda one, more: one.unionByName(more, allowMissingColumns=True), cut)


def copies_near(events: DataFrame, rows: DataFrame, settings: DeduplicateSettings) -> DataFrame:
    """The ``rows`` that may decide which ``events`` are copies: both have ``event_date`` and ``event_time``.

    A row within the delay may be the first copy, and itself a copy of a row within the delay of it.
    """
    delay = delay_of(settings)
    if delay is None:
        return rows
    dates = dates_within(events, 2 * delay)
    if not dates:
        return rows.limit(0)
    # Silver is partitioned by date; other tables have statistics of the time.
    begin, end = (datetime.combine(day, time(), UTC) for day in (dates[0], dates[-1] + timedelta(days=1)))
    is_near = F.col("event_time").between(F.lit(begin), F.lit(end))
    return rows.where(is_near & F.col("event_date").isin(dates))


def late_for(lake: OpenLake, spans: list[BatchSpan]) -> DataFrame | None:
    """The events of silver that a query may have dropped as late in ``spans``; None: no event.

    Returns:
        The columns of ``silver/events``, and ``cause``.
    """
    if not any(span.watermark_ms for span in spans):
        return None
    return late_in_silver(behind(rows_added(lake, SILVER_EVENTS, spans), spans))


def replaced(
    lake: OpenLake, spans: list[BatchSpan], silver: DataFrame, late: DataFrame, fresh: DataFrame | None
) -> DataFrame:
    """Copies in silver that a late event replaces, because it was received first.

    Args:
        lake: the lake.
        spans: what a query has read of silver since the last repair.
        silver: all that it has read.
        late: all events of ``silver/late_events``.
        fresh: the new ones among them; None: no event is new.

    Returns:
        The columns of ``silver/events``, and ``cause``.
    """
    delay, found = delay_of(lake.settings.deduplicate), []
    if spans:
        found.append(replaced_in(rows_added(lake, SILVER_EVENTS, spans), late, delay))
    if fresh is not None:
        found.append(replaced_in(copies_near(fresh, silver, lake.settings.deduplicate), fresh, delay))
    rows = found[0] if len(found) == 1 else found[0].unionByName(found[1], allowMissingColumns=True)
    return late_in_silver(rows)
