"""``gold/attributions``: a late click changes the rows of its impression, a late impression those of its clicks.

::

    window 1h      12:00          12:30          13:00
    live           i ────────────────────────────┤ unclicked
    late                k 12:10                            unclicked i is deleted, the pair i, k is inserted
    live                          m 12:30 → j ✗            orphan_click m
    late           j 12:05                                 m becomes the pair j, m

The rows of one impression id are compared together. A mark changes only ``invalid`` in the rows of its event.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.contract.events import CLICK, IMPRESSION
from spark_jobs.queries.attribute.operator import attribute
from spark_jobs.queries.correction import DUE, GROUP, AffectedRows, Correction, CorrectionInput
from spark_jobs.spark.columns import interval
from spark_jobs.traffic_rules.kinds.common import EVENT
from spark_jobs.traffic_rules.valid_columns import INVALID, INVALID_IMPRESSION, with_invalid


def recompute(late: DataFrame, scene: CorrectionInput) -> AffectedRows:
    """See :data:`spark_jobs.queries.correction.Recompute`."""
    own = scene.settings.attribute
    window = interval(own.window)
    scope = (
        late.where(F.col("event_type").isin(IMPRESSION, CLICK))
        .withColumn(GROUP, _impression())
        .withColumn(DUE, F.col("event_time") + window)
    )
    since, until = F.min("event_time") - window, F.max("event_time") + window
    groups = scene.few(scope.groupBy(GROUP).agg(since.alias("since"), until.alias("until")))
    dates = scene.near(scope, 2 * own.window)
    events = scene.events(dates).where(F.col("event_type").isin(IMPRESSION, CLICK))
    near = events.join(groups.select(GROUP), on=_impression() == F.col(GROUP), how="left_semi")
    # An impression closes when no more clicks can come, a click without one when no impression can.
    due = F.coalesce(F.col("impression_time") + window, F.col("click_time") + interval(own.tolerance))
    live = scene.live.where(F.col("event_date").isin(scene.near(scope, own.window)))
    rows = attribute(near, near, own)
    if scene.marked is not None:
        rows = with_invalid(rows, scene.marked(dates))
    return AffectedRows(
        scope=scope.select(*EVENT, GROUP, DUE),
        expected=_of_groups(rows.withColumn(DUE, due), groups),
        actual=_of_groups(live, groups),
    )


def _impression() -> Column:
    """The id of the impression itself, or of the one that a click names."""
    return F.when(F.col("event_type") == IMPRESSION, F.col("event_id")).otherwise(
        F.coalesce("impression_id", F.lit(""))
    )


def _of_groups(rows: DataFrame, groups: DataFrame) -> DataFrame:
    """The rows of attributions that late events of ``groups`` can touch: of the same impression, near in time."""
    time = F.coalesce("impression_time", "click_time")
    is_near = (F.col("impression_id") == F.col(GROUP)) & time.between(F.col("since"), F.col("until"))
    return rows.join(groups, on=is_near, how="inner").drop("since", "until")


_IS_CLICKED = "CASE WHEN status = 'clicked' THEN 1 ELSE 0 END"
CORRECTION = Correction(
    recompute=recompute,
    key=lambda _columns: ("impression_id", "click_id"),
    time="coalesce(impression_time, click_time)",
    # A row is a pair, so rows cannot count impressions or their cost.
    counts={"campaign_id": "campaign_id", "clicks": _IS_CLICKED},
    net=(INVALID, INVALID_IMPRESSION),
)
