"""The totals of a marking: events, clicks and money by rule, and the change of net by campaign."""

from collections import defaultdict

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from spark_jobs.contract.events import CLICK, CONVERSION, IMPRESSION
from spark_jobs.marks.model import NetChange, RuleChange, Sum
from spark_jobs.spark.columns import exact_sum
from spark_jobs.traffic_rules.kinds.common import EVENT
from spark_jobs.traffic_rules.valid_columns import INVALID, INVALID_IMPRESSION, rules_by_event, with_invalid

_RULE = ("rule_id", "rule_version", "class")
_MONEY = ("cost_micros", "value_micros", "currency")
_NET = ("impressions", "clicks", "cost_micros")
_COUNTS = ("events", "impressions", "clicks", "conversions", "cost_micros")


def summed(rows: DataFrame, events: DataFrame) -> tuple[RuleChange, ...]:
    """The changes that ``rows`` of ``silver/marks`` make, by rule and version, in their order.

    Args:
        rows: marks and revocations.
        events: the marked events.
    """
    worth = rows.join(events.select(*EVENT, *_MONEY), on=list(EVENT), how="left")
    sums = worth.groupBy(*_RULE, "revoked", "currency").agg(
        F.count(F.lit(1)).alias("events"),
        _of_type(IMPRESSION).alias("impressions"),
        _of_type(CLICK).alias("clicks"),
        _of_type(CONVERSION).alias("conversions"),
        F.coalesce(exact_sum("cost_micros"), F.lit(0)).alias("cost_micros"),
        F.coalesce(exact_sum("value_micros"), F.lit(0)).alias("value_micros"),
    )
    found: defaultdict[tuple[str, str, str], dict[bool, list[Row]]] = defaultdict(lambda: {False: [], True: []})
    for part in sums.collect():
        rule_id, rule_version, traffic_class = (part[name] for name in _RULE)
        found[rule_id, rule_version, traffic_class][part["revoked"]].append(part)
    return tuple(
        RuleChange(*rule, marked=_total(sides[False]), revoked=_total(sides[True]))
        for rule, sides in sorted(found.items())
    )


def _of_type(event_type: str) -> Column:
    return F.count_if(F.col("event_type") == event_type)


def _total(parts: list[Row]) -> Sum:
    values = {part["currency"]: int(part["value_micros"]) for part in parts if part["currency"] is not None}
    return Sum(**{name: int(sum(part[name] for part in parts)) for name in _COUNTS}, value_micros=values)


def net_changes(attributions: DataFrame, before: DataFrame, after: DataFrame) -> tuple[NetChange, ...]:
    """The change of net ``attributions`` by campaign; campaigns without one are left out.

    Args:
        attributions: rows of ``gold/attributions``.
        before: the active marks, see :func:`spark_jobs.traffic_rules.evaluate.active_marks`.
        after: those that would be active.
    """
    sides = [_net(with_invalid(attributions, rules_by_event(marks))) for marks in (before, after)]
    signed = [
        rows.withColumns({name: F.col(name) * sign for name in _NET}) for rows, sign in zip(sides, (-1, 1), strict=True)
    ]
    both = signed[0].unionByName(signed[1]).groupBy("campaign_id").agg(*[exact_sum(name).alias(name) for name in _NET])
    found = [NetChange(row[0], *map(int, row[1:])) for row in both.orderBy("campaign_id").collect()]
    return tuple(one for one in found if one.impressions or one.clicks or one.cost_micros)


def _net(rows: DataFrame) -> DataFrame:
    """``campaign_id``, and the valid part of each impression of ``rows``."""
    shown = rows.where(F.col("impression_time").isNotNull()).groupBy("campaign_id", "impression_id", "impression_time")
    valid = shown.agg(
        F.max(F.coalesce(INVALID_IMPRESSION, F.lit(False))).alias("is_invalid"),
        F.max(F.coalesce("cost_micros", F.lit(0))).alias("cost"),
        F.count_if(F.col("click_id").isNotNull() & F.col(INVALID).isNull()).alias("clicks"),
    )
    is_valid = F.when(F.col("is_invalid"), 0).otherwise(1)
    counted = {"impressions": is_valid, "cost_micros": is_valid * F.col("cost")}
    return valid.withColumns(counted).select("campaign_id", *_NET)
