"""Where each row went, key by key, from the tables alone.

Nothing here trusts what a query reported of itself: a query that was killed reports nothing, and a row that was lost
is lost from its report as well. A row that is not in the next table counts as late only if it can have been: if rows
that were received before it were so much newer that the watermark had a right to pass it.
"""

from datetime import timedelta

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from spark_jobs.contracts.durations import microseconds
from spark_jobs.contracts.events import CLICK, HEARTBEAT, IMPRESSION, OK
from spark_jobs.contracts.settings import DeduplicateMode, JoinType, Settings

_FLAGS = ("received", "late", "kept", "join_late", "session_late", "attributed", "sessioned")


def key_accounts(
    bronze: DataFrame, silver: DataFrame, attributions: DataFrame, sessions: DataFrame, settings: Settings
) -> DataFrame:
    """One row per event key with how often it stands in each table.

    Args:
        bronze: ``bronze/events``.
        silver: ``silver/events``.
        attributions: ``gold/attributions``.
        sessions: ``gold/sessions``.
        settings: the watermarks by which a row can have been late.

    Returns:
        ``event_type``, and as bigint: ``received`` (records with verdict ok), ``late`` (those of them that can have
        been late for deduplicate), ``kept`` (rows of silver), ``join_late``, ``session_late`` (those of them that can
        have been late there), ``attributed``, ``sessioned`` (rows of gold that hold it).
        Keys are compared by their 64-bit hash; two that share one only add up, as the totals do.
    """
    parts = [
        _received(bronze, settings),
        _kept(silver, settings),
        *_attributed(attributions),
        sessions.select(F.explode("events").alias("event")).select(
            F.col("event.event_type").alias("event_type"), F.col("event.event_id").alias("event_id"), _one("sessioned")
        ),
    ]
    every = parts[0]
    for part in parts[1:]:
        every = every.unionByName(part, allowMissingColumns=True)
    hashed = every.select("event_type", F.xxhash64("event_type", "event_id").alias("key"), *_FLAGS)
    return hashed.groupBy("event_type", "key").agg(*[F.coalesce(F.sum(flag), F.lit(0)).alias(flag) for flag in _FLAGS])


def totals(keys: DataFrame, settings: Settings) -> DataFrame:
    """The sums of the ledger over ``keys`` (see :func:`key_accounts`), as one row.

    Returns:
        ``kept``, ``duplicates``, ``late``, ``unaccounted``, ``surplus``, ``attribution_late``, ``attribution_open``,
        ``session_late``, ``session_open``, as :class:`spark_jobs.contracts.ledger.Ledger` means them.
    """
    is_kept, lost = F.col("kept") > 0, F.col("kept") - F.col("sessioned")
    in_time = F.col("received") - F.col("late")
    is_unjoined = is_kept & (F.col("attributed") == 0) & F.col("event_type").isin(*_preserved(settings))
    can_be_late, can_miss_session = F.col("join_late") > 0, F.col("session_late") > 0
    surplus = F.greatest(F.col("kept") - F.col("received"), F.lit(0)) + F.greatest(-lost, F.lit(0))
    sums = {
        "kept": F.col("kept"),
        "duplicates": F.when(is_kept, F.greatest(F.col("received") - F.col("kept"), F.lit(0))),
        "late": F.when(~is_kept, F.col("late")),
        "unaccounted": F.when(~is_kept, in_time),
        "surplus": surplus + F.when(~is_kept & (F.col("attributed") > 0), 1).otherwise(0),
        "attribution_late": F.when(is_unjoined & can_be_late, F.col("kept")),
        "attribution_open": F.when(is_unjoined & ~can_be_late, F.col("kept")),
        "session_late": F.when((lost > 0) & can_miss_session, lost),
        "session_open": F.when((lost > 0) & ~can_miss_session, lost),
    }
    return keys.agg(*[F.coalesce(F.sum(value), F.lit(0)).alias(name) for name, value in sums.items()])


def _received(bronze: DataFrame, settings: Settings) -> DataFrame:
    ok = bronze.where(F.col("verdict") == OK).select("event_type", "event_id", "event_time", "ingest_time")
    if settings.deduplicate.mode is DeduplicateMode.FOREVER:
        return ok.select("event_type", "event_id", _one("received"), F.lit(0).cast("bigint").alias("late"))
    is_late = F.col("event_time") <= F.col("newest_before") - _interval(settings.deduplicate.watermark)
    return _with_newest_before(ok).select("event_type", "event_id", _one("received"), _flag(is_late, "late"))


def _kept(silver: DataFrame, settings: Settings) -> DataFrame:
    rows = _with_newest_before(silver.select("event_type", "event_id", "event_time", "ingest_time"))
    attribute, sessionize = settings.attribute, settings.sessionize
    joined = F.col("newest_before") - _interval(max(attribute.impression_watermark, attribute.click_watermark))
    in_session = F.col("newest_before") - _interval(sessionize.watermark + sessionize.gap)
    return rows.where(F.col("event_type") != HEARTBEAT).select(
        "event_type",
        "event_id",
        _one("kept"),
        _flag(F.col("event_time") <= joined, "join_late"),
        _flag(F.col("event_time") <= in_session, "session_late"),
    )


def _attributed(attributions: DataFrame) -> list[DataFrame]:
    impressions = attributions.where(F.col("impression_time").isNotNull())
    clicks = attributions.where(F.col("click_time").isNotNull())
    return [
        rows.select(F.lit(event_type).alias("event_type"), F.col(column).alias("event_id"), _one("attributed"))
        for rows, event_type, column in ((impressions, IMPRESSION, "impression_id"), (clicks, CLICK, "click_id"))
    ]


def _with_newest_before(rows: DataFrame) -> DataFrame:
    """``rows`` with ``newest_before``: the largest event time of all that reached bronze in earlier batches."""
    batches = rows.groupBy("ingest_time").agg(F.max("event_time").alias("newest"))
    # One row per batch: a window without a partition is no burden.
    earlier = Window.partitionBy(F.lit(0)).orderBy("ingest_time").rowsBetween(Window.unboundedPreceding, -1)
    bounds = batches.select("ingest_time", F.max("newest").over(earlier).alias("newest_before"))
    return rows.join(F.broadcast(bounds), on="ingest_time", how="left")


def _preserved(settings: Settings) -> tuple[str, ...]:
    """The event types that the join puts out whether or not they found a counterpart."""
    return {
        JoinType.FULL_OUTER: (IMPRESSION, CLICK),
        JoinType.LEFT_OUTER: (IMPRESSION,),
        JoinType.RIGHT_OUTER: (CLICK,),
        JoinType.INNER: (),
    }[settings.attribute.join]


def _interval(duration: timedelta) -> Column:
    return F.expr(f"INTERVAL {microseconds(duration)} MICROSECOND")


def _one(name: str) -> Column:
    return F.lit(1).cast("bigint").alias(name)


def _flag(condition: Column, name: str) -> Column:
    return F.coalesce(condition, F.lit(False)).cast("bigint").alias(name)
