"""``gold/campaign_stats``: a late impression or click changes the windows that it counts in.

::

    window 10min   12:00 ──────────────── 12:10 ──────────────── 12:20
    live                i1                        k2 → i9 ✗
    late           k1 → i1 12:04: one click more
    late           i9 12:08: one impression more, and its click k2 in the window after

A click counts for the campaign of its impression, so a late impression brings its clicks with it. The rows of one
window and campaign are compared together. Net is the result of the same operator without events that are marked as
invalid traffic; so a click on a marked impression is not valid either.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.config.choices import StatsOutput
from spark_jobs.contract.events import CLICK, IMPRESSION, KEY
from spark_jobs.contract.tables import VALID
from spark_jobs.queries.attribute.operator import is_in_time
from spark_jobs.queries.campaign_stats.operator import campaign_stats, windows
from spark_jobs.queries.campaign_stats.windows import key_of
from spark_jobs.queries.correction import DUE, GROUP, AffectedRows, Correction, CorrectionInput
from spark_jobs.queries.kept_columns import with_columns
from spark_jobs.spark.columns import between, in_order, interval
from spark_jobs.traffic_rules.kinds.common import EVENT
from spark_jobs.traffic_rules.valid_columns import as_before, with_valid

_BOTH = (IMPRESSION, CLICK)
_OWN_TIME = "own_time"


def recompute(late: DataFrame, scene: CorrectionInput) -> AffectedRows:
    """See :data:`spark_jobs.queries.correction.Recompute`."""
    own, reach = scene.settings.campaign_stats, scene.settings.attribute.window
    groups = scene.settings.group_types
    late = with_columns(late.where(F.col("event_type").isin(*_BOTH)), groups)
    events = with_columns(scene.events(scene.near(late, reach)).where(F.col("event_type").isin(*_BOTH)), groups)
    by = ["campaign_id", *groups]
    placed = _counted(late, events, by, scene).withColumn("window", windows(own))
    in_windows = placed.select(
        *KEY, _OWN_TIME, F.col("window.start").alias("window_start"), F.col("window.end").alias("window_end"), *by
    )
    key = key_of([*scene.live.columns, *groups])
    scope = in_windows.select(
        *KEY,
        F.col(_OWN_TIME).alias("event_time"),
        *key,
        in_order(*key).alias(GROUP),
        (F.col("window_end") + interval(reach)).alias(DUE),
    )
    scope = scope.localCheckpoint()
    touched = scene.few(scope.select(*key, GROUP, DUE).distinct())
    # A window holds events of two dates at most, and their impressions may be older.
    dates = scene.near(scope, own.window + 2 * reach, "window_start")
    near = scene.events(dates).where(F.col("event_type").isin(*_BOTH))
    same = [F.col(f"row.{name}").eqNullSafe(F.col(f"touched.{name}")) for name in key]

    def of_touched(rows: DataFrame, *more: str) -> DataFrame:
        joined = rows.alias("row").join(touched.alias("touched"), on=same, how="inner")
        return joined.select("row.*", *[f"touched.{name}" for name in (GROUP, *more)])

    rows = _windows(near, scene)
    if scene.marked is not None:
        valid = near.join(scene.marked(dates).select(*EVENT), on=list(EVENT), how="left_anti")
        rows = with_valid(rows, _windows(valid, scene), key)
    live = of_touched(between(scene.live, "window_end", scope, "window_end", "window_end"))
    return AffectedRows(scope.select(*EVENT, GROUP, DUE), as_before(of_touched(rows, DUE), live, key), live)


def _windows(events: DataFrame, scene: CorrectionInput) -> DataFrame:
    """Whole windows, whatever the live query emits."""
    own = scene.settings.campaign_stats.model_copy(update={"output": StatsOutput.APPEND})
    return campaign_stats(events, events, events, own, scene.settings.attribute, scene.settings.group_types)


def _counted(late: DataFrame, events: DataFrame, by: Sequence[str], scene: CorrectionInput) -> DataFrame:
    """The effects of late events: key and ``own_time`` of each, ``event_time`` and ``by`` of the event it counts."""
    is_impression, is_click = F.col("event_type") == IMPRESSION, F.col("event_type") == CLICK
    shown = late.where(is_impression)
    impressions: list[Column | str] = [
        F.col("event_id").alias("shown_id"),
        F.col("event_time").alias("shown_time"),
        *by,
    ]
    clicks = [F.col("impression_id").alias("of_id"), F.col("event_time").alias("click_time")]
    is_in = is_in_time(F.col("click_time"), F.col("shown_time"), scene.settings.attribute)
    is_match = (F.col("of_id") == F.col("shown_id")) & is_in
    brought = shown.select(*KEY, *impressions).join(events.where(is_click).select(*clicks), on=is_match, how="inner")
    made = (
        late.where(is_click)
        .select(*KEY, *clicks)
        .join(
            # The clicks of an impression that no longer counts do not count either.
            events.where(is_impression).select(*impressions).union(shown.select(*impressions)),
            on=is_match,
            how="inner",
        )
    )
    timed = F.col("click_time").alias("event_time")
    return (
        shown.select(*EVENT, F.col("event_time").alias(_OWN_TIME), *by)
        .unionByName(brought.select(*KEY, timed, F.col("shown_time").alias(_OWN_TIME), *by))
        .unionByName(made.select(*KEY, timed, timed.alias(_OWN_TIME), *by))
    )


CORRECTION = Correction(
    recompute=recompute,
    key=key_of,
    time="window_end",
    reach=lambda settings: settings.campaign_stats.window,
    counts={
        "campaign_id": "campaign_id",
        "impressions": "impressions",
        "clicks": "clicks",
        "cost_micros": "cost_micros",
    },
    net=VALID,
)
