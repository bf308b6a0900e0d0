"""Tumbling windows, aligned to 1970, in which a key has more events than a rule allows."""

from pyspark.sql import Column, DataFrame, WindowSpec
from pyspark.sql import Window as Over
from pyspark.sql import functions as F

from spark_jobs.traffic_rules.kinds.common import is_of, marks, window_start_us
from spark_jobs.traffic_rules.rules import RateRule, SequenceRule

_START, _COUNT = "window_start_us", "count"


def in_windows(events: DataFrame, rule: RateRule | SequenceRule, *types: str) -> DataFrame:
    """The ``events`` that have one of ``types`` and the key of ``rule``, with the start of their window."""
    found = events.where(is_of(*types) & F.col(rule.key.value).isNotNull())
    return found.withColumn(_START, window_start_us(rule.window))


def window_of(rule: RateRule | SequenceRule) -> WindowSpec:
    """The events that share key and window, of all types."""
    return Over.partitionBy(rule.key.value, _START)


def crowded(rows: DataFrame, rule: RateRule | SequenceRule, is_alone: Column | None = None) -> DataFrame:
    """The marks of the events of ``rows`` in windows with more than ``threshold`` of them, each type by itself.

    Args:
        rows: from :func:`in_windows`.
        rule: the rule.
        is_alone: whether the window has no events that make these valid; None: no event can.
    """
    counts = [F.when(is_of(one), F.count_if(is_of(one)).over(window_of(rule))) for one in rule.event_type]
    counted = rows.withColumns({_COUNT: F.coalesce(*counts), "is_alone": F.lit(True) if is_alone is None else is_alone})
    found = counted.where(F.col("is_alone") & (F.col(_COUNT) > rule.threshold))
    start = F.date_format(F.timestamp_micros(_START), "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'")
    return marks(found, events=F.col(_COUNT), window_start=start)
