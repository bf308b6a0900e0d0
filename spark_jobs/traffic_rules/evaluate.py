"""Applies rules to events and compares the resulting marks with the existing ones."""

from collections.abc import Callable
from datetime import datetime
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.config.durations import EPOCH
from spark_jobs.contract.tables import MARKS
from spark_jobs.traffic_rules.kinds.cidr import cidr
from spark_jobs.traffic_rules.kinds.common import EVENT, is_within, micros_literal
from spark_jobs.traffic_rules.kinds.delay import delay
from spark_jobs.traffic_rules.kinds.elsewhere import elsewhere
from spark_jobs.traffic_rules.kinds.rate import rate
from spark_jobs.traffic_rules.kinds.repeat import repeat
from spark_jobs.traffic_rules.kinds.sequence import sequence
from spark_jobs.traffic_rules.kinds.user_agent_list import user_agent_list
from spark_jobs.traffic_rules.rules import RateRule, Rule, RuleSet, SequenceRule

_KINDS: dict[str, Callable[[DataFrame, Any], DataFrame]] = {
    "user_agent_list": user_agent_list,
    "cidr": cidr,
    "rate": rate,
    "repeat": repeat,
    "elsewhere": elsewhere,
    "delay": delay,
    "sequence": sequence,
}
MARK = (*EVENT, "rule_id", "rule_version")
"""The columns that identify a mark."""
_SAID = ("class", "evidence")
_NO_MARKS = ", ".join(f"{one.name} {one.sql_type}" for one in MARKS.columns if one.name in (*MARK, *_SAID))


def expected_marks(events: DataFrame, rules: RuleSet, until: datetime) -> DataFrame:
    """The marks of ``events`` by ``rules``.

    Args:
        events: see :mod:`spark_jobs.traffic_rules.kinds`.
        rules: the rules.
        until: events are complete before it; a window that ends later marks nothing yet.

    Returns:
        :data:`MARK`, ``class`` and ``evidence``; each mark once.
    """
    known = events.where(is_within(None, until))
    found = [_marks(known, rule, until) for rule in rules.rules]
    return reduce(DataFrame.unionByName, found, events.sparkSession.createDataFrame([], _NO_MARKS))


def _marks(events: DataFrame, rule: Rule, until: datetime) -> DataFrame:
    if isinstance(rule, RateRule | SequenceRule):
        events = events.where(is_within(None, until - (until - EPOCH) % rule.window))
    found = _KINDS[rule.kind](events, rule).where(is_within(rule.since, rule.until))
    return found.withColumns(
        {
            "rule_id": F.lit(rule.id),
            "rule_version": F.lit(rule.version),
            "class": F.lit(rule.traffic_class.value),
        }
    )


def active_marks(marks: DataFrame) -> DataFrame:
    """The active marks among rows of ``silver/marks``: those whose newest row does not revoke them.

    Returns:
        :data:`MARK`, ``class`` and ``evidence``; each mark once.
    """
    newest = F.max_by(F.struct(*_SAID, "revoked"), "marked_at").alias("newest")
    last = marks.groupBy(*MARK).agg(newest)
    return last.where(~F.col("newest.revoked")).select(*MARK, *[f"newest.{name}" for name in _SAID])


def marked_events(marks: DataFrame) -> DataFrame:
    """The events with an active mark among rows of ``silver/marks``.

    Returns:
        :data:`spark_jobs.traffic_rules.kinds.common.EVENT`; each event once.
    """
    return active_marks(marks).select(*EVENT).distinct()


def mark_changes(expected: DataFrame, active: DataFrame, marked_at: datetime) -> DataFrame:
    """The rows of ``silver/marks`` that make the marks in ``expected`` active, and revoke others of ``active``.

    The evidence is not compared: an active mark keeps the evidence that it was found with.
    """
    columns = (*MARK, *_SAID)
    both = expected.select(*columns, F.lit(False).alias("revoked")).unionAll(
        active.select(*columns, F.lit(True).alias("revoked"))
    )
    said = [F.any_value(name).alias(name) for name in (*_SAID, "revoked")]
    one_side = both.groupBy(*MARK).agg(F.count(F.lit(1)).alias("sides"), *said).where(F.col("sides") == 1)
    rows = one_side.withColumns({"marked_at": micros_literal(marked_at), "event_date": F.to_date("event_time")})
    return rows.select(*MARKS.column_names)
