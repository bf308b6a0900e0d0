"""Marks clicks from another address and another device than their impression was shown on, as link scanners make them.

::

    window 1 h:     impression (A, macOS) ── 1 s ──▶ click (B, Windows) ── 12 s ──▶ click (A, macOS)
                                                     ▲                              nor (B, macOS), nor (A, Windows)
"""

from datetime import timedelta

from pyspark.sql import DataFrame
from pyspark.sql import Window as Over
from pyspark.sql import functions as F

from spark_jobs.config.durations import microseconds
from spark_jobs.contract.events import CLICK, IMPRESSION
from spark_jobs.traffic_rules.kinds.addresses import with_address_bits
from spark_jobs.traffic_rules.kinds.common import EVENT, is_of, marks
from spark_jobs.traffic_rules.rules import ElsewhereRule

_SHOWN = "impression"
_DEVICE = ("ip", "user_agent")


def elsewhere(events: DataFrame, rule: ElsewhereRule) -> DataFrame:
    """The clicks from elsewhere up to ``window`` after their impression; the evidence is how long after it."""
    return marks(from_elsewhere(events, rule.window), delay_ms=F.floor(F.col("delay_us") / 1000))


def from_elsewhere(events: DataFrame, window: timedelta) -> DataFrame:
    """The clicks up to ``window`` after their impression whose ``ip`` and ``user_agent`` both differ from its own.

    One of them may change: a phone leaves the wifi, a browser is updated. An unknown one is no difference. Of several
    impressions with the id, the last one at or before the click counts.

    Returns:
        :data:`EVENT` and ``delay_us``, the time since the impression.
    """
    delay_us = F.col("time_us") - F.col(f"{_SHOWN}.time_us")
    clicks = _with_impressions(events).where(is_of(CLICK)).withColumn("delay_us", delay_us)
    differ = [F.col(name) != F.col(f"{_SHOWN}.{name}") for name in _DEVICE]
    suspected = clicks.where((F.col("delay_us") <= microseconds(window)) & differ[0] & differ[1])
    # Addresses are read last, which takes the longest: few clicks are left.
    read = _with_address(_with_address(suspected, "ip", "own"), f"{_SHOWN}.ip", "shown")
    return read.where(F.col("own") != F.col("shown")).select(*EVENT, "delay_us")


def _with_impressions(events: DataFrame) -> DataFrame:
    """The clicks and impressions, each with the last impression of its id so far: time, address and user agent."""
    is_shown = is_of(IMPRESSION)
    both = events.where(is_of(CLICK, IMPRESSION)).select(
        *EVENT,
        F.when(is_shown, F.col("event_id")).otherwise(F.col("impression_id")).alias("link"),
        F.unix_micros("event_time").alias("time_us"),
        *[F.nullif(F.col(name), F.lit("")).alias(name) for name in _DEVICE],
    )
    # By range, so that an impression at the same time is included.
    up_to_now = Over.partitionBy("link").orderBy("time_us").rangeBetween(Over.unboundedPreceding, Over.currentRow)
    last = F.max(F.when(is_shown, F.struct("time_us", *_DEVICE))).over(up_to_now)
    return both.where(F.col("link").isNotNull()).withColumn(_SHOWN, last)


def _with_address(rows: DataFrame, name: str, column: str) -> DataFrame:
    """``rows`` with the address in the column ``name`` in a form that all its spellings share; other text as it is."""
    return with_address_bits(rows, name).withColumn(column, F.coalesce("bits", name)).drop("bits")
