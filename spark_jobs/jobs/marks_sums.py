"""What the changes of a marking stand for: events, clicks and money, by rule."""

from collections import defaultdict

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from spark_jobs.contracts.events import CLICK, CONVERSION, IMPRESSION
from spark_jobs.contracts.marking import RuleChange, Sum
from spark_jobs.transforms.marks.marked import EVENT

_RULE = ("rule_id", "rule_version", "class")
_MONEY = ("cost_micros", "value_micros", "currency")
_COUNTS = ("events", "impressions", "clicks", "conversions", "cost_micros")


def summed(rows: DataFrame, events: DataFrame) -> tuple[RuleChange, ...]:
    """What ``rows`` of ``silver/marks`` change, by rule and version, in their order.

    Args:
        rows: marks and revocations.
        events: say what the events stand for.
    """
    worth = rows.join(events.select(*EVENT, *_MONEY), on=list(EVENT), how="left")
    sums = worth.groupBy(*_RULE, "revoked", "currency").agg(
        F.count(F.lit(1)).alias("events"),
        _of_type(IMPRESSION).alias("impressions"),
        _of_type(CLICK).alias("clicks"),
        _of_type(CONVERSION).alias("conversions"),
        F.coalesce(F.sum("cost_micros"), F.lit(0)).alias("cost_micros"),
        F.coalesce(F.sum("value_micros"), F.lit(0)).alias("value_micros"),
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
    values = {part["currency"]: part["value_micros"] for part in parts if part["currency"] is not None}
    return Sum(**{name: sum(part[name] for part in parts) for name in _COUNTS}, value_micros=values)
