"""Tables of gold as they are and as they should be: what repairs and replays both go by."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.corrections.correction import DUE, GROUP, Scene, Touched
from spark_jobs.transforms.changes import COPIES, IS_FROZEN
from spark_jobs.transforms.marks.marked import EVENT
from spark_jobs.transforms.open_rows import KEY


def computed(touched: Touched) -> Touched:
    """``touched``, computed once: each of its rows is asked for several times, and its plans are long."""
    return Touched(
        scope=touched.scope.distinct().localCheckpoint(),
        expected=touched.expected.localCheckpoint(),
        actual=touched.actual.localCheckpoint(),
    )


def open_groups(touched: Touched, scene: Scene) -> DataFrame:
    """The groups that the live query may still change: their ``group``, and when the last of it is ``due``."""
    dues = touched.scope.select(GROUP, DUE).unionByName(touched.expected.select(GROUP, DUE))
    last = dues.groupBy(GROUP).agg(F.max(DUE).alias(DUE))
    return scene.few(last.where(~scene.is_closed(F.col(DUE))).localCheckpoint())


def causes_of(touched: Touched, events: DataFrame) -> DataFrame:
    """For each group that ``events`` touch, the first of them to be received.

    Returns:
        ``group``, ``received_at``, ``event_type``, ``event_id``, ``cause``.
    """
    told = F.struct(F.col("ingest_time").alias("received_at"), *KEY, "cause")
    caused = touched.scope.select(*EVENT, GROUP).join(events, on=list(EVENT), how="inner")
    return caused.groupBy(GROUP).agg(F.min(told).alias("told")).select(GROUP, "told.*")


def sums(changed: DataFrame) -> dict[str, int]:
    """How many rows of :func:`spark_jobs.transforms.changes.changes` are ``inserts``, ``deletes`` and ``frozen``."""
    size, is_applied = F.abs(F.col(COPIES)), ~F.col(IS_FROZEN)
    (row,) = changed.agg(
        F.sum(F.when(is_applied & (F.col(COPIES) > 0), size)).alias("inserts"),
        F.sum(F.when(is_applied & (F.col(COPIES) < 0), size)).alias("deletes"),
        F.sum(F.when(~is_applied, size)).alias("frozen"),
    ).collect()
    return {name: int(value or 0) for name, value in row.asDict().items()}
