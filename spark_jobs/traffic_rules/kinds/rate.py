"""Marks all events of a key in a window that has too many of them.

::

    window 1 min, threshold 2:      12:00          12:01          12:02
                                      ├─ x  x  x ────├─ x ──────────├─
                                         ▲  ▲  ▲        not marked
"""

from pyspark.sql import DataFrame

from spark_jobs.traffic_rules.kinds.tumbling import crowded, in_windows
from spark_jobs.traffic_rules.rules import RateRule


def rate(events: DataFrame, rule: RateRule) -> DataFrame:
    """The events in a window with more than ``threshold`` events of their type and key; none without a key."""
    return crowded(in_windows(events, rule, *rule.event_type), rule)
