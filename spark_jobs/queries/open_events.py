"""The events in the state of a query, computed from tables: a reset rebuilds the state from them.

Each function uses the input of the query and its output. ``settled_before`` is the watermark of the query's last
batch: events behind it are decided, that is emitted or dropped as late.
"""

from datetime import datetime, timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.config.durations import milliseconds
from spark_jobs.contract.events import HEARTBEAT, KEY, VISIT_TYPES
from spark_jobs.traffic_rules.kinds.common import window_start_us


def events_since(silver: DataFrame, begin: datetime) -> DataFrame:
    """The events from ``begin`` on.

    Args:
        silver: its rows, at least from the day of ``begin`` on.
        begin: a time with its zone.

    Returns:
        The columns of silver; includes the newest row, of whatever type.
    """
    is_since = F.unix_micros("event_time") >= F.lit(settled_us(begin))
    return union(silver, silver.where((F.col("event_type") != HEARTBEAT) & is_since), newest(silver))


def newest_heartbeat(silver: DataFrame) -> DataFrame:
    """The newest heartbeat of ``silver``, with its columns; no row without one."""
    return union(silver, newest(silver.where(F.col("event_type") == HEARTBEAT)))


def not_settled(silver: DataFrame, settled_before: datetime) -> DataFrame:
    """Exactly the events that the watermark has not passed, which no state function has decided yet.

    Args:
        silver: its rows, at least from the day of ``settled_before`` on.
        settled_before: see above.

    Returns:
        The columns of silver; includes the newest heartbeat, which the watermark may be derived from.
    """
    is_beat = F.col("event_type") == HEARTBEAT
    events = silver.where(~is_beat & ~is_settled(settled_before))
    return union(silver, events, newest(silver.where(is_beat)))


def is_settled(before: datetime) -> Column:
    """Whether the watermark ``before`` has passed the event; Spark drops rows with such a time."""
    return F.unix_micros("event_time") <= settled_us(before)


def settled_us(before: datetime) -> int:
    """The watermark ``before`` in microseconds since 1970, rounded down to milliseconds as Spark does."""
    return int(before.timestamp() * 1000) * 1000


def newest(silver: DataFrame) -> DataFrame:
    """The row that the watermark is derived from, whatever its type."""
    return silver.orderBy(F.desc("event_time"), *KEY).limit(1)


def is_after(time: Column, settled_before: datetime, more: timedelta = timedelta()) -> Column:
    """Whether ``time + more`` is not settled yet, or only by a millisecond."""
    bound_us = settled_us(settled_before) - (milliseconds(more) + 1) * 1000
    return F.unix_micros(time) >= F.lit(bound_us)


def union(silver: DataFrame, *parts: DataFrame) -> DataFrame:
    """The rows of all ``parts``, with the columns of ``silver``."""
    first, *others = (part.select(*silver.columns) for part in parts)
    for other in others:
        first = first.unionByName(other)
    return first


def chain_key(longest: timedelta = timedelta()) -> list[Column]:
    """The columns of events that may be in one chain: the user, and where ``longest`` cuts, since when.

    Without a longest chain there is one column only, as in the state of queries that knew no cut.
    """
    return [F.col("user_id"), *([window_start_us(longest)] if longest else [])]


def is_of_visit() -> Column:
    """Whether a row (``event_type``, ``user_id``) shows that its user was there: no heartbeat and no conversion."""
    return F.col("event_type").isin(*VISIT_TYPES) & F.col("user_id").isNotNull()
