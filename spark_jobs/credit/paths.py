"""``gold/paths``: the touches that led to each conversion; ``gold/left_out``: the value that has no path.

::

    click_lookback 30d, view_lookback 1d

                    day 1      day 12     day 40     day 41
    impressions       i1         i2         i3
    clicks            k1         k2                             k1 lies more than 30 days before the conversion
    conversion                                         p

    views = fallback    1 click k2 (i2)
    views = always      1 click k2 (i2), 2 view i3
    views = never       1 click k2 (i2)

A clicked impression is one touch, at the last of its clicks that counts. Which conversions count, and what a refund
takes back, is decided by :mod:`spark_jobs.credit.orders`.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.config.choices import CreditViews, PathOutcome, TouchKind
from spark_jobs.config.sections import CreditSettings
from spark_jobs.contract.events import ATTRIBUTION_STATUSES
from spark_jobs.contract.tables import LEFT_OUT, PATHS
from spark_jobs.credit.last_touches import TOUCHED_USER, with_last
from spark_jobs.credit.orders import BASIS_TIME, BASIS_USER, JUDGED, lies_within

_, _, _ORPHAN = ATTRIBUTION_STATUSES
_SHOWN = ("impression_id", "impression_time", "campaign_id", "ad_id", "click_id", "click_time")
_CLICKED = "struct<click_time: timestamp, click_id: string>"


def with_touches(
    conversions: DataFrame, shown: DataFrame, own: CreditSettings, crowded: DataFrame | None = None
) -> DataFrame:
    """``conversions`` with the touches that led to each, or to the one that it takes back or repeats.

    Args:
        conversions: rows of :func:`spark_jobs.credit.orders.judged`.
        shown: rows of :func:`shown_of`: all those with a click or an impression within the lookbacks of a conversion;
            more do no harm.
        own: the settings.
        crowded: the users with more than ``credit.most_touches`` rows in ``shown``; None: no user has.

    Returns:
        The columns of ``conversions`` and of ``gold/paths``.
    """
    touches = _one_per_impression(_candidates(conversions, shown, own, crowded), own)
    by_path = touches.groupBy(*JUDGED).agg(F.collect_list("touch").alias("found"))
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
    )


def paths_of(touched: DataFrame) -> DataFrame:
    """The rows of ``gold/paths`` among those of :func:`with_touches`."""
    return touched.where(F.col("value_micros").isNotNull()).select(*PATHS.column_names)


def left_out_of(touched: DataFrame) -> DataFrame:
    """The rows of ``gold/left_out`` among those of :func:`with_touches`."""
    last = F.try_element_at("touches", F.lit(-1))
    return (
        touched.where(F.col("reason").isNotNull())
        .withColumn("campaign_id", last["campaign_id"])
        .select(*LEFT_OUT.column_names)
    )


def shown_of(attributions: DataFrame) -> DataFrame:
    """The rows of ``gold/attributions`` that may be touches, with ``touched_user``."""
    return attributions.where(F.col("status") != _ORPHAN).select(F.col("user_id").alias(TOUCHED_USER), *_SHOWN)


def _candidates(conversions: DataFrame, shown: DataFrame, own: CreditSettings, crowded: DataFrame | None) -> DataFrame:
    """Each conversion with each row of ``shown`` that may be a touch of it, or nulls; ``clicked``, ``seen``."""
    is_click = lies_within(F.col("click_time"), own.click_lookback, BASIS_TIME)
    is_view = lies_within(F.col("impression_time"), own.view_lookback, BASIS_TIME)
    clicked = F.when(is_click, F.struct("click_time", "click_id")).alias("clicked")
    seen = F.when(is_view, F.col("impression_time")).alias("seen")
    counts = is_click if own.views is CreditViews.NEVER else is_click | is_view
    of_user = F.col(BASIS_USER) == F.col(TOUCHED_USER)
    if crowded is None:
        return conversions.join(shown, on=of_user & counts, how="left").select("*", clicked, seen)
    others = conversions.join(crowded, on=of_user, how="left_anti")
    theirs = conversions.join(crowded, on=of_user, how="left_semi")
    touches = shown.join(crowded, on=TOUCHED_USER, how="left_semi")
    views = touches.dropDuplicates([TOUCHED_USER, "impression_id"])
    none_seen, none_clicked = F.lit(None).cast("timestamp").alias("seen"), F.lit(None).cast(_CLICKED).alias("clicked")
    by_click = with_last(theirs, touches, F.col("click_time"), F.col("click_id"), own.most_touches)
    by_view = with_last(theirs, views, F.col("impression_time"), F.col("impression_id"), own.most_touches)
    found = by_click.where(is_click).select("*", clicked, none_seen)
    if own.views is not CreditViews.NEVER:
        found = found.unionByName(by_view.where(is_view).select("*", none_clicked, seen))
    joined = others.join(shown, on=of_user & counts, how="left").select("*", clicked, seen)
    return joined.unionByName(found).unionByName(theirs, allowMissingColumns=True)


def _one_per_impression(candidates: DataFrame, own: CreditSettings) -> DataFrame:
    """The conversions with ``touch``, once for each impression; null: no touch.

    The keys include the user, by which the join distributed the rows, so they are not distributed again.
    """
    by_impression = candidates.groupBy(*JUDGED, "impression_id").agg(
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
