"""Marks clicks and conversions that follow the event before them faster than a person could act.

::

    threshold 1 s:     impression i ──0.3 s──▶ click on i          click of u ──0.9 s──▶ conversion of u
                                               ▲                                         ▲
"""

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import Window as Over
from pyspark.sql import functions as F

from spark_jobs.config.durations import microseconds
from spark_jobs.contract.events import CLICK, CONVERSION, IMPRESSION
from spark_jobs.traffic_rules.kinds.common import EVENT, is_of, marks
from spark_jobs.traffic_rules.rules import DelayRule

_BEFORE = {CLICK: (IMPRESSION, "event_id", "impression_id"), CONVERSION: (CLICK, "user_id", "user_id")}
"""By type: the type of the event before, and the columns of that event and of its own that must be equal."""


def delay(events: DataFrame, rule: DelayRule) -> DataFrame:
    """The clicks less than ``threshold`` after their impression, and conversions after the last click of their user.

    Only what came before counts, or at the same time.
    """
    return reduce(DataFrame.unionAll, [_after(events, rule, event_type) for event_type in rule.event_type])


def _after(events: DataFrame, rule: DelayRule, event_type: str) -> DataFrame:
    type_before, column_before, column = _BEFORE[event_type]
    is_before, time_us = is_of(type_before), F.unix_micros("event_time")
    both = events.where(is_of(event_type, type_before)).select(
        *EVENT,
        F.when(is_before, F.col(column_before)).otherwise(F.col(column)).alias("link"),
        time_us.alias("time_us"),
        F.when(is_before, time_us).alias("before_us"),
    )
    # By range, so that what happened at the same time is included.
    up_to_now = Over.partitionBy("link").orderBy("time_us").rangeBetween(Over.unboundedPreceding, Over.currentRow)
    delay_us = F.col("time_us") - F.max("before_us").over(up_to_now)
    timed = both.where(F.col("link").isNotNull()).withColumn("delay_us", delay_us)
    soon = timed.where(is_of(event_type) & (F.col("delay_us") < microseconds(rule.threshold)))
    return marks(soon, delay_ms=F.floor(F.col("delay_us") / 1000))
