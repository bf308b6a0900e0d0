"""Gold without invalid traffic: columns next to the gross ones, which stay as they are.

::

    impression i  ✗ rule a      click k on i                invalid of the pair (i, k): [a]      k is not valid either
    impression j                click m on j  ✗ rule b      invalid of the pair (j, m): [b]      j is valid
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.contract.events import CLICK, IMPRESSION
from spark_jobs.contract.tables import SUMS, VALID
from spark_jobs.traffic_rules.kinds.common import EVENT, is_of

RULES = "rules"
"""Column: the ids of the rules that mark an event, sorted."""
INVALID, INVALID_IMPRESSION = "invalid", "invalid_impression"
_IS_OLD = "is_old"
_ID, _TIME = "marked_id", "marked_time"
_CLICK = ("click_id", "click_time")


def rules_by_event(active: DataFrame) -> DataFrame:
    """The events of ``active`` marks: ``event_type``, ``event_id``, ``event_time`` and ``rules``."""
    return active.groupBy(*EVENT).agg(F.array_sort(F.collect_set("rule_id")).alias(RULES))


def with_invalid(rows: DataFrame, marked: DataFrame) -> DataFrame:
    """``rows`` of ``gold/attributions`` with ``invalid`` and ``invalid_impression`` set from marks.

    Args:
        rows: the columns of ``gold/attributions``, and others.
        marked: from :func:`rules_by_event`.
    """
    named = {IMPRESSION: ("impression_id", "impression_time"), CLICK: ("click_id", "click_time")}
    joined = rows
    for event_type, names in named.items():
        ids = [F.col(name).alias(own) for name, own in zip(EVENT[1:], names, strict=True)]
        side = marked.where(is_of(event_type)).select(*ids, F.col(RULES).alias(f"{event_type}_rules"))
        joined = joined.join(side, on=list(names), how="left")
    both = F.array_compact(F.array(*[f"{event_type}_rules" for event_type in named]))
    rules = F.array_sort(F.array_distinct(F.flatten(both)))
    found = {
        INVALID: F.when(F.size(rules) > 0, rules),
        INVALID_IMPRESSION: F.when(F.col(f"{IMPRESSION}_rules").isNotNull(), F.lit(True)),
    }
    return joined.withColumns(found).select(*rows.columns)


def with_valid(rows: DataFrame, valid: DataFrame, key: Sequence[str]) -> DataFrame:
    """``rows`` of ``gold/campaign_stats`` with the sums of ``valid`` as net.

    Args:
        rows: the columns of the table.
        valid: rows of the same windows, computed without marked events.
        key: identifies a row.
    """
    same = [F.col(f"gross.{name}").eqNullSafe(F.col(f"net.{name}")) for name in key]
    joined = rows.alias("gross").join(valid.select(*key, *SUMS).alias("net"), on=same, how="left")
    # Not by the sums themselves: a cost may be null, because no impression has a price.
    is_empty = F.col("net.impressions").isNull()
    net = [
        F.when(is_empty, F.lit(0)).otherwise(F.col(f"net.{name}")).alias(own)
        for name, own in zip(SUMS, VALID, strict=True)
    ]
    return joined.select(*[f"gross.{name}" for name in rows.columns if name not in VALID], *net)


def as_before(expected: DataFrame, actual: DataFrame, key: Sequence[str]) -> DataFrame:
    """``expected`` with net null where it equals gross and ``actual`` has null there, which means the same.

    Args:
        expected: rows of ``gold/campaign_stats`` as they should be, and other columns.
        actual: as they are.
        key: identifies a row.
    """
    old = actual.where(F.col(VALID[0]).isNull()).select(*key).distinct().withColumn(_IS_OLD, F.lit(True))
    same = [F.col(f"wanted.{name}").eqNullSafe(F.col(f"old.{name}")) for name in key]
    joined = expected.alias("wanted").join(old.alias("old"), on=same, how="left").select("wanted.*", _IS_OLD)
    is_told_by_null = F.coalesce(_IS_OLD, F.lit(False))
    for name, own in zip(SUMS, VALID, strict=True):
        is_told_by_null &= F.col(name).eqNullSafe(F.col(own))
    net = {name: F.when(~is_told_by_null, F.col(name)) for name in VALID}
    # All at once, so that each is compared with the others as they were.
    return joined.withColumns(net).select(*expected.columns)


def unmarked_events(events: DataFrame, marked: DataFrame) -> DataFrame:
    """The ``events`` that are not ``marked``: see :func:`spark_jobs.traffic_rules.evaluate.marked_events`."""
    return events.join(marked, on=list(EVENT), how="left_anti")


def unmarked_attributions(rows: DataFrame, marked: DataFrame) -> DataFrame:
    """The ``rows`` of attributions without ``marked`` events.

    All rows of a marked impression are removed, with its clicks. A row with a marked click keeps the impression, with
    null for the click; ``status`` stays as it was.
    """
    shown = rows.join(_of(marked, IMPRESSION), on=_is("impression_id", "impression_time"), how="left_anti")
    clicks = _of(marked, CLICK)
    columns = [
        F.when(F.col(_ID).isNull(), F.col(name)).alias(name) if name in _CLICK else F.col(name) for name in rows.columns
    ]
    return shown.join(clicks, on=_is(*_CLICK), how="left").select(*columns)


def _of(marked: DataFrame, event_type: str) -> DataFrame:
    """The marked events of a type, under names that attributions do not have."""
    names = F.col("event_id").alias(_ID), F.col("event_time").alias(_TIME)
    return marked.where(F.col("event_type") == event_type).select(*names)


def _is(event_id: str, time: str) -> list[Column]:
    return [F.col(event_id) == F.col(_ID), F.col(time) == F.col(_TIME)]
