"""Marks events that other types should accompany: all of a key in a window with many of them and none of the others.

::

    clicks without activity, window 1 min, threshold 1:     12:00             12:01             12:02
                                                              ├─ c  c ──────────├─ c  a  c ───────├─
                                                                 ▲  ▲              not marked
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.traffic_rules.kinds.common import is_of
from spark_jobs.traffic_rules.kinds.tumbling import crowded, in_windows, window_of
from spark_jobs.traffic_rules.rules import SequenceRule


def sequence(events: DataFrame, rule: SequenceRule) -> DataFrame:
    """The events in a window with more than ``threshold`` of their type and key, and none of the types ``without``."""
    others = F.count_if(is_of(*rule.without)).over(window_of(rule))
    return crowded(in_windows(events, rule, *rule.event_type, *rule.without), rule, others == 0)
