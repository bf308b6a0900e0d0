"""Each event once: of events with the same type and id, the first to arrive.

::

    watermark 3h     ─────────────────────────────────────────▶ event time
    batch 1          a 12:00      b 13:00
    batch 2          a 12:00 ✗ duplicate       c 16:30           watermark of batch 1: 10:00
    batch 3          d 09:55 ✗ late (before 10:00)
    batch 4          a 12:00 ✗ late (before 13:30), no longer remembered and no longer needed

*Watermark*: the largest event time seen in the batches before the last one, minus ``deduplicate.watermark``.
*State*: one key per event, for up to twice the watermark's delay; in mode ``forever`` one key per event, forever.
Expired keys are forgotten together, each time the watermark has moved by a 64th of its delay: it takes a scan.
*Late rows*: dropped by Spark; the ledger counts them. In mode ``forever`` no row is late.
*Cost*: native operator; only the two key columns are state. adloom expires keys itself: spark_jobs/spark/jars/java.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.config.choices import DeduplicateMode
from spark_jobs.config.durations import milliseconds
from spark_jobs.config.sections import DeduplicateSettings
from spark_jobs.contract.events import KEY, OK

_OF_RECORDS = ("raw", "source", "verdict", "source_name", "reason", "received_time", "requeued_from", "received_meta")
"""The columns of bronze about the record of an event."""


def deduplicate(events: DataFrame, settings: DeduplicateSettings) -> DataFrame:
    """The first of each (``event_type``, ``event_id``) of ``events``.

    Args:
        events: streaming; the columns of ``bronze/events``, verdict ok only: an event with a null ``event_time`` would
            pass twice, and one in the future would move the watermark past all good rows.
        settings: the mode and the watermark.

    Returns:
        The same columns.

    Source: Spark's `Structured Streaming guide <https://spark.apache.org/docs/latest/streaming/>`_, streaming
    deduplication.
    """
    if settings.mode is DeduplicateMode.FOREVER:
        return events.dropDuplicates(list(KEY))
    delay = f"{milliseconds(settings.watermark)} milliseconds"
    return events.withWatermark("event_time", delay).dropDuplicatesWithinWatermark(list(KEY))


def good_events(bronze: DataFrame) -> DataFrame:
    """The rows of bronze with verdict ok, with the columns of an event and ``ingest_time``."""
    return bronze.where(F.col("verdict") == OK).drop(*_OF_RECORDS)
