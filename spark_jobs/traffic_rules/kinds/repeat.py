"""Marks clicks on an impression that was clicked often enough just before.

::

    window 10 min, threshold 1:     12:00     12:05     12:20     12:30     12:40:00.000001
                                      x         x         x         x         x
                                                ▲                   ▲         the one before is older than the window

    without_elsewhere:              (impression A) click B, click A, click B, click A
                                                                              ▲
"""

from pyspark.sql import DataFrame
from pyspark.sql import Window as Over
from pyspark.sql import functions as F

from spark_jobs.config.durations import microseconds
from spark_jobs.traffic_rules.kinds.common import EVENT, marks, wanted
from spark_jobs.traffic_rules.kinds.elsewhere import from_elsewhere
from spark_jobs.traffic_rules.rules import ELSEWHERE_WINDOW, RepeatRule


def repeat(events: DataFrame, rule: RepeatRule) -> DataFrame:
    """The clicks with ``threshold`` or more earlier ones on their impression that are no older than ``window``.

    Clicks at the same time are ordered by id. With ``without_elsewhere``, clicks from elsewhere might as well not be
    there: otherwise a link scanner's would make the person's, which follows, a repeated one.
    """
    order = Over.partitionBy("impression_id").orderBy("event_time", "event_id")
    since_us = F.unix_micros("event_time") - F.unix_micros(F.lag("event_time", rule.threshold).over(order))
    clicks = wanted(events, rule).where(F.col("impression_id").isNotNull())
    if rule.without_elsewhere:
        clicks = clicks.join(from_elsewhere(events, ELSEWHERE_WINDOW), on=list(EVENT), how="left_anti")
    repeated = clicks.withColumn("since_us", since_us).where(F.col("since_us") <= microseconds(rule.window))
    within_ms = F.floor(F.col("since_us") / 1000)
    return marks(repeated, earlier_clicks=F.lit(rule.threshold), within_ms=within_ms)
