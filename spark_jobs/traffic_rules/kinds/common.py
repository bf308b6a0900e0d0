"""The parts that all kinds of rules share."""

from datetime import datetime, timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.config.durations import EPOCH, microseconds
from spark_jobs.traffic_rules.rules import Rule

EVENT = ("event_type", "event_id", "event_time")
"""The columns that identify an event; its time is one of them, because a forgotten id may be used again."""


def is_of(*types: str) -> Column:
    """Whether an event has one of ``types``."""
    return F.col("event_type").isin(*types)


def wanted(events: DataFrame, rule: Rule) -> DataFrame:
    """The ``events`` of the types that ``rule`` marks."""
    return events.where(is_of(*rule.event_type))


def marks(rows: DataFrame, **evidence: Column) -> DataFrame:
    """The marks of the events in ``rows``, with ``evidence`` as JSON."""
    said = F.to_json(F.struct(*[value.alias(name) for name, value in evidence.items()]))
    return rows.select(*EVENT, said.alias("evidence"))


def micros_literal(time: datetime) -> Column:
    """``time``, which has a zone, to the microsecond."""
    return F.timestamp_micros(F.lit(microseconds(time - EPOCH)))


def is_within(since: datetime | None, until: datetime | None) -> Column:
    """Whether an event lies in [``since``, ``until``); None: unbounded."""
    begun = F.lit(True) if since is None else F.col("event_time") >= micros_literal(since)
    return begun if until is None else begun & (F.col("event_time") < micros_literal(until))


def window_start_us(window: timedelta) -> Column:
    """Where the window of an event begins, of windows that follow each other from 1970 on; microseconds."""
    time_us = F.unix_micros("event_time")
    return time_us - F.pmod(time_us, F.lit(microseconds(window)))
