"""The keys that deduplication remembers, for a reset."""

from datetime import datetime, timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.contract.events import HEARTBEAT
from spark_jobs.queries.open_events import is_after


def remembered_keys(silver: DataFrame, settled_before: datetime, delay: timedelta | None) -> DataFrame:
    """The events of silver whose repeats ``deduplicate`` must still recognize.

    Args:
        silver: its rows, at least from the day on that lies ``delay`` before ``settled_before``.
        settled_before: see above.
        delay: ``deduplicate.watermark``, the longer of before and now; None: every event is remembered forever.

    Returns:
        The columns of silver.
    """
    events = silver.where(F.col("event_type") != HEARTBEAT)
    return events if delay is None else events.where(is_after(F.col("event_time"), settled_before, delay))
