"""``gold/paths``: the touches that led to each conversion.

::

    click_lookback 30d, view_lookback 1d

                    day 1      day 12     day 40     day 41
    impressions       i1         i2         i3
    clicks            k1         k2                             k1 lies more than 30 days before the conversion
    conversion                                         p

    views = fallback    1 click k2 (i2)
    views = always      1 click k2 (i2), 2 view i3
    views = never       1 click k2 (i2)

A clicked impression is one touch, at the last of its clicks that counts.
"""

from datetime import timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as Over
from pyspark.sql import functions as F

from spark_jobs.config.choices import CreditViews, PathOutcome, TouchKind
from spark_jobs.config.durations import microseconds
from spark_jobs.config.sections import CreditSettings
from spark_jobs.contract.events import ATTRIBUTION_STATUSES, CONVERSION
from spark_jobs.contract.tables import PATHS
from spark_jobs.spark.columns import amount

ORDER = "order"
"""Column of :func:`order_of`."""
BASIS_USER, BASIS_TIME = "basis_user", "basis_time"
"""Columns: the user and the time for which touches are looked up; null: no touches."""
_OF_CONVERSION = (
    *("conversion_id", "user_id", "conversion_time", "conversion_type", "value_micros", "currency", "order_id"),
    *("revokes", "event_date"),
)
_, _, _ORPHAN = ATTRIBUTION_STATUSES


def creditable(conversions: DataFrame, own: CreditSettings) -> DataFrame:
    """The conversions that have a path.

    A repeated conversion has none: one within ``credit.conversion_lookback`` of another one before it with the same
    order_id, or without an order with the same id. A refund has the touches of the conversion that it takes back, the
    last one before it if its id was used again; if that is missing or has no path, the refund has no touches.

    Args:
        conversions: rows with the columns of silver, each event once. The rows up to ``credit.conversion_lookback``
            before the wanted ones must be among them.
        own: the settings.

    Returns:
        The columns of ``gold/paths`` about the conversion, ``value_micros`` negated if it is a refund; ``basis_user``
        and ``basis_time``.
    """
    is_refund = F.col("revokes").isNotNull()
    priced = conversions.withColumns({"value_micros": amount("value_micros"), ORDER: order_of()})
    reported = priced.where(F.col("event_type") == CONVERSION).select(
        F.col("event_id").alias("conversion_id"),
        F.col("event_time").alias("conversion_time"),
        *(name for name in _OF_CONVERSION if name not in ("conversion_id", "conversion_time", "event_date")),
        F.to_date("event_time").alias("event_date"),
        _is_repeat(is_refund, own.conversion_lookback).alias("is_repeat"),
    )
    basis = (F.col("user_id").alias(BASIS_USER), F.col("conversion_time").alias(BASIS_TIME))
    counted = reported.where(~is_refund & ~F.col("is_repeat"))
    bought = counted.select(*_OF_CONVERSION, *basis)
    revoked = counted.select(F.col("conversion_id").alias("revoked_id"), *basis)
    is_taken_back = (F.col("revokes") == F.col("revoked_id")) & _lies_within(BASIS_TIME, own.conversion_lookback)
    refunds = reported.where(is_refund).withColumn("value_micros", -F.col("value_micros"))
    traced = refunds.join(revoked, on=is_taken_back, how="left").groupBy(*_OF_CONVERSION)
    last = traced.agg(F.max(F.struct(BASIS_TIME, BASIS_USER)).alias("last"))
    return bought.unionByName(last.select(*_OF_CONVERSION, "last.*"))


def order_of() -> Column:
    """``order``, equal for conversions of which only the first counts: their order, or without one their id."""
    of_order, alone = F.concat(F.lit("order "), "order_id"), F.concat(F.lit("id "), "event_id")
    return F.coalesce(of_order, alone).alias(ORDER)


def paths_of(conversions: DataFrame, attributions: DataFrame, own: CreditSettings) -> DataFrame:
    """The path of each of ``conversions``.

    Args:
        conversions: rows of :func:`creditable`.
        attributions: rows of ``gold/attributions``: all those with a click or an impression within the lookbacks of a
            conversion; more do no harm.
        own: the settings.

    Returns:
        The columns of ``gold/paths``.
    """
    touches = _one_per_impression(_candidates(conversions, attributions, own), own)
    by_path = touches.groupBy(*_OF_CONVERSION, BASIS_USER).agg(F.collect_list("touch").alias("found"))
    is_click = F.exists("found", lambda touch: touch["kind"] == TouchKind.CLICK.value)
    found = by_path.withColumn("has_click", is_click)
    if own.views is CreditViews.FALLBACK:
        clicks = F.filter("found", lambda touch: touch["kind"] == TouchKind.CLICK.value)
        found = found.withColumn("found", F.when(F.col("has_click"), clicks).otherwise(F.col("found")))
    length = F.size("found").cast("bigint")
    outcome = (
        F.when(F.col("has_click"), F.lit(PathOutcome.CLICK_THROUGH.value))
        .when(length > 0, F.lit(PathOutcome.VIEW_THROUGH.value))
        .otherwise(F.lit(PathOutcome.ORGANIC.value))
    )
    return found.withColumns(
        {"outcome": outcome, "path_length": length, "touches": F.transform(F.sort_array("found"), _numbered)}
    ).select(*PATHS.column_names)


def _is_repeat(is_refund: Column, lookback: timedelta) -> Column:
    of_order = Over.partitionBy(is_refund, ORDER).orderBy("event_time", "event_id")
    since_last = F.unix_micros("event_time") - F.lag(F.unix_micros("event_time")).over(of_order)
    return ~is_refund & F.coalesce(since_last <= microseconds(lookback), F.lit(False))


def _lies_within(time: str, lookback: timedelta, before: str = "conversion_time") -> Column:
    """Whether ``time`` is not after ``before`` and at most ``lookback`` before it; null if ``time`` is."""
    return (F.unix_micros(before) - F.unix_micros(time)).between(0, microseconds(lookback))


def _candidates(conversions: DataFrame, attributions: DataFrame, own: CreditSettings) -> DataFrame:
    """Each conversion with each row of attributions that may be a touch of it, or nulls; ``clicked``, ``seen``."""
    shown = attributions.where(F.col("status") != _ORPHAN).select(
        F.col("user_id").alias("touched_user"),
        *("impression_id", "impression_time", "campaign_id", "ad_id", "click_id", "click_time"),
    )
    is_click = _lies_within("click_time", own.click_lookback, BASIS_TIME)
    is_view = _lies_within("impression_time", own.view_lookback, BASIS_TIME)
    counts = is_click if own.views is CreditViews.NEVER else is_click | is_view
    joined = conversions.join(shown, on=(F.col(BASIS_USER) == F.col("touched_user")) & counts, how="left")
    return joined.withColumns(
        {
            "clicked": F.when(is_click, F.struct("click_time", "click_id")),
            "seen": F.when(is_view, F.col("impression_time")),
        }
    )


def _one_per_impression(candidates: DataFrame, own: CreditSettings) -> DataFrame:
    """The conversions with ``touch``, once for each impression; null: no touch.

    The keys include the user, by which the join distributed the rows, so they are not distributed again.
    """
    by_impression = candidates.groupBy(*_OF_CONVERSION, BASIS_USER, "impression_id").agg(
        F.max("clicked").alias("clicked"),
        F.max("seen").alias("seen"),
        F.max("campaign_id").alias("campaign_id"),
        F.max("ad_id").alias("ad_id"),
    )
    click = F.col("clicked")
    is_touch = click.isNotNull() if own.views is CreditViews.NEVER else click.isNotNull() | F.col("seen").isNotNull()
    kind = F.when(click.isNotNull(), F.lit(TouchKind.CLICK.value)).otherwise(F.lit(TouchKind.VIEW.value))
    touch = F.struct(
        # The fields that touches are ordered by come first.
        F.coalesce(click["click_time"], F.col("seen")).alias("touch_time"),
        F.coalesce(click["click_id"], F.col("impression_id")).alias("id"),
        F.col("impression_id"),
        kind.alias("kind"),
        click["click_id"].alias("click_id"),
        F.col("campaign_id"),
        F.col("ad_id"),
    )
    return by_impression.withColumn("touch", F.when(is_touch, touch))


def _numbered(touch: Column, place: Column) -> Column:
    """A touch as ``gold/paths`` has it; ``place`` counts from 0."""
    names = ("kind", "impression_id", "click_id", "campaign_id", "ad_id", "touch_time")
    return F.struct((place + 1).alias("position"), *(touch[name].alias(name) for name in names))
