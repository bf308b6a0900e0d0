"""The rows to delete and to insert, so that a table has the rows that it should have."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as Over
from pyspark.sql import functions as F

from spark_jobs.config.durations import microseconds
from spark_jobs.contract.events import KEY
from spark_jobs.queries.correction import DUE, GROUP, AffectedRows, CorrectionInput
from spark_jobs.restatements.plan import Cause, ChangeOutcome
from spark_jobs.spark.columns import json_row
from spark_jobs.traffic_rules.kinds.common import EVENT

ROW, COPIES, IS_FROZEN = "row", "copies", "is_frozen"
_COUNTS = ("impressions", "clicks", "cost_micros")
_GROUP = "group"


def changes(
    expected: DataFrame, actual: DataFrame, columns: Sequence[str], causes: DataFrame, frozen: Column
) -> DataFrame:
    """The changes that turn ``actual`` into ``expected``.

    Args:
        expected: ``columns`` and ``group``: rows as they should be. Rows may be equal.
        actual: the same, as they are.
        columns: of the table.
        causes: ``group`` and more columns about it; one row per group.
        frozen: whether a row is too old to be changed. Then its group stays as it is.

    Returns:
        The columns of ``causes``; ``row``, a struct of ``columns``; ``copies``: how many such rows to insert, or to
        delete if it is negative; ``is_frozen``.
    """

    def counted(rows: DataFrame, copies: int) -> DataFrame:
        return rows.select(_GROUP, F.struct(*columns).alias(ROW), F.lit(copies).cast("bigint").alias(COPIES))

    both = counted(expected, 1).unionAll(counted(actual, -1))
    differing = both.groupBy(_GROUP, ROW).agg(F.sum(COPIES).alias(COPIES)).where(F.col(COPIES) != 0)
    marked = differing.select("*", f"{ROW}.*").withColumn(IS_FROZEN, frozen).select(_GROUP, ROW, COPIES, IS_FROZEN)
    whole = F.max(IS_FROZEN).over(Over.partitionBy(_GROUP))
    return marked.withColumn(IS_FROZEN, whole).join(causes, on=_GROUP, how="inner")


def unexpected_rows(rows: DataFrame, actual: DataFrame, columns: Sequence[str]) -> DataFrame:
    """The ``rows`` that are not among ``actual``: ``row``, a struct of ``columns``, and ``copies``, their number."""

    def counted(some: DataFrame, copies: int) -> DataFrame:
        return some.select(F.struct(*columns).alias(ROW), F.lit(copies).cast("bigint").alias(COPIES))

    both = counted(rows, 1).unionAll(counted(actual, -1))
    return both.groupBy(ROW).agg(F.sum(COPIES).alias(COPIES)).where(F.col(COPIES) > 0)


def unexplained(rows: DataFrame, changed: DataFrame, key: Sequence[str], frozen: Column) -> DataFrame:
    """The deletion of rows that should not be there.

    Args:
        rows: from :func:`unexpected_rows`.
        changed: the other changes. A row with the key of an inserted one joins its group, as an update.
        key: columns that identify a row.
        frozen: whether a row is too old to be changed.

    Returns:
        The columns of :func:`changes`.
    """
    named = json_row(*[f"{ROW}.{name}" for name in key]).alias("row_key")
    due = changed.where(F.col(COPIES) > 0).select(named, F.col(_GROUP)).dropDuplicates(["row_key"])
    own = F.concat(F.lit("none of "), F.to_json(ROW))
    found = rows.select("*", named).join(due, on="row_key", how="left").withColumn(_GROUP, F.coalesce(_GROUP, own))
    spread = found.select(_GROUP, ROW, (-F.col(COPIES)).alias(COPIES), f"{ROW}.*").withColumn(IS_FROZEN, frozen)
    texts = [F.lit(None).cast("string").alias(name) for name in ("event_type", "event_id")]
    said = [
        F.lit(None).cast("timestamp").alias("received_at"),
        *texts,
        F.lit(Cause.REPLAY.value).alias("cause"),
    ]
    return spread.select(_GROUP, ROW, COPIES, IS_FROZEN, *said)


def is_older(time: Column, than: Column, length: timedelta) -> Column:
    """Whether ``time`` is more than ``length`` before ``than``."""
    return F.unix_micros(than) - F.unix_micros(time) > microseconds(length)


def rows_of(changed: DataFrame, *, inserted: bool) -> DataFrame:
    """The rows of :func:`changes` to insert, or to delete, repeated by their ``copies``; no frozen ones."""
    sign = 1 if inserted else -1
    chosen = changed.where((F.col(COPIES) * sign > 0) & ~F.col(IS_FROZEN))
    return chosen.select(F.explode(F.array_repeat(ROW, (F.col(COPIES) * sign).cast("int"))).alias(ROW)).select(
        f"{ROW}.*"
    )


def restatements(
    changed: DataFrame, key: Sequence[str], columns: Sequence[str], time: str, counts: Mapping[str, str]
) -> DataFrame:
    """One row per changed row of a table: a deletion and an insertion with the same key are one update.

    Args:
        changed: from :func:`changes`, with ``event_type``, ``event_id``, ``cause`` and ``received_at``.
        key: columns that identify a row.
        columns: of the table.
        time: the event time of a row, in SQL over ``columns``.
        counts: the counts of a row, in SQL over ``columns``: see :class:`spark_jobs.queries.correction.Correction`.

    Returns:
        The columns of ``gold/restatements`` but ``repair``, ``table_name`` and ``decided_at``.
    """
    return restatement_rows(changed, key, columns, time, counts).drop(_GROUP)


def restatement_rows(
    changed: DataFrame, key: Sequence[str], columns: Sequence[str], time: str, counts: Mapping[str, str]
) -> DataFrame:
    """As :func:`restatements`, and the ``group`` of each row."""
    reasons = ["cause", "event_type", "event_id", "received_at", IS_FROZEN]
    size = F.abs(F.col(COPIES)).cast("int")
    each = changed.select(
        _GROUP, *reasons, (F.col(COPIES) > 0).alias("is_new"), F.explode(F.array_repeat(ROW, size)).alias(ROW)
    )
    valued = each.select(
        _GROUP,
        *reasons,
        "is_new",
        *[F.col(f"{ROW}.{name}").alias(name) for name in columns],
    ).select(
        _GROUP,
        *reasons,
        "is_new",
        json_row(*key).alias("row_key"),
        json_row(*columns).alias("json"),
        F.expr(time).alias("row_time"),
        *[_given(counts, name).alias(name) for name in ("campaign_id", *_COUNTS)],
    )
    of_key = Over.partitionBy(_GROUP, "row_key", "is_new").orderBy("json")
    numbered = valued.withColumn("number", F.row_number().over(of_key))
    old, new = (numbered.where(F.col("is_new") == is_new).drop("is_new") for is_new in (False, True))
    both = old.alias("old").join(new.alias("new"), on=[_GROUP, "row_key", "number"], how="full_outer")
    return both.select(*_columns_of_restatements(counts))


def _columns_of_restatements(counts: Mapping[str, str]) -> list[Column]:
    old, new = F.col("old.json"), F.col("new.json")

    def either(name: str) -> Column:
        return F.coalesce(F.col(f"new.{name}"), F.col(f"old.{name}")).alias(name)

    change = F.when(old.isNull(), F.lit("insert")).when(new.isNull(), F.lit("delete")).otherwise(F.lit("update"))
    outcome = F.when(either(IS_FROZEN), F.lit(ChangeOutcome.FROZEN.value)).otherwise(F.lit(ChangeOutcome.APPLIED.value))
    differences = [
        (F.coalesce(f"new.{name}", F.lit(0)) - F.coalesce(f"old.{name}", F.lit(0))).cast("bigint")
        if name in counts
        else F.lit(None).cast("bigint")
        for name in _COUNTS
    ]
    return [
        F.col(_GROUP),
        change.alias("change"),
        outcome.alias("outcome"),
        F.col("row_key"),
        old.alias("before"),
        new.alias("after"),
        *[either(name) for name in ("row_time", "campaign_id", "cause", "event_type", "event_id", "received_at")],
        *[value.alias(name) for value, name in zip(differences, _COUNTS, strict=True)],
    ]


def _given(counts: Mapping[str, str], name: str) -> Column:
    kind = "string" if name == "campaign_id" else "bigint"
    return F.expr(counts.get(name, "NULL")).cast(kind)


def checkpointed(touched: AffectedRows) -> AffectedRows:
    """``touched``, computed once: each part is read several times, and its query plans are long."""
    return AffectedRows(
        scope=touched.scope.distinct().localCheckpoint(),
        expected=touched.expected.localCheckpoint(),
        actual=touched.actual.localCheckpoint(),
    )


def open_groups(touched: AffectedRows, scene: CorrectionInput) -> DataFrame:
    """The groups that the live query may still change: ``group``, and when its last row is ``due``."""
    dues = touched.scope.select(GROUP, DUE).unionByName(touched.expected.select(GROUP, DUE))
    last = dues.groupBy(GROUP).agg(F.max(DUE).alias(DUE))
    return scene.few(last.where(~scene.is_closed(F.col(DUE))).localCheckpoint())


def causes_of(touched: AffectedRows, events: DataFrame) -> DataFrame:
    """For each group, the first received of the ``events`` that touch it.

    Returns:
        ``group``, ``received_at``, ``event_type``, ``event_id``, ``cause``.
    """
    cause = F.struct(F.col("ingest_time").alias("received_at"), *KEY, "cause")
    caused = touched.scope.select(*EVENT, GROUP).join(events, on=list(EVENT), how="inner")
    return caused.groupBy(GROUP).agg(F.min(cause).alias("first")).select(GROUP, "first.*")


def sums(changed: DataFrame) -> dict[str, int]:
    """How many rows of :func:`spark_jobs.restatements.compare.changes` are ``inserts``, ``deletes`` and ``frozen``."""
    size, is_applied = F.abs(F.col(COPIES)), ~F.col(IS_FROZEN)
    (row,) = changed.agg(
        F.sum(F.when(is_applied & (F.col(COPIES) > 0), size)).alias("inserts"),
        F.sum(F.when(is_applied & (F.col(COPIES) < 0), size)).alias("deletes"),
        F.sum(F.when(~is_applied, size)).alias("frozen"),
    ).collect()
    return {name: int(value or 0) for name, value in row.asDict().items()}
