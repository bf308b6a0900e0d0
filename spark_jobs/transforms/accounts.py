"""Where each event went, key by key, from the tables alone.

Nothing here relies on what a query reports about itself: a killed query reports nothing, and a lost row is missing
from the report too. A row that is not in the next table counts as late only if it can have been late: if rows received
before it were so much newer that the watermark may have passed it.
"""

from dataclasses import dataclass
from functools import reduce
from operator import add

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.contracts.choices import DeduplicateMode, JoinType
from spark_jobs.contracts.durations import microseconds
from spark_jobs.contracts.events import CLICK, HEARTBEAT, IMPRESSION, OK
from spark_jobs.contracts.settings import Settings
from spark_jobs.transforms.batches import REQUEUED
from spark_jobs.transforms.quarantine import in_quarantine

_MARKS = (
    "received",
    "late",
    "kept",
    "joinable",
    "join_late",
    "session_late",
    "attributed",
    "sessioned",
    "initial",
    "userless",
    "late_found",
    "late_expired",
)


@dataclass(frozen=True)
class LakeTables:
    """The rows of a lake: ``bronze/events``, ``silver/events``, ``gold/attributions``, ``gold/sessions``.

    ``initial`` has the events that sessionize started with; None: it started empty. ``late_events`` has the rows of
    ``silver/late_events``; None: nothing was repaired.
    """

    bronze: DataFrame
    silver: DataFrame
    attributions: DataFrame
    sessions: DataFrame
    initial: DataFrame | None = None
    late_events: DataFrame | None = None


def groups(tables: LakeTables) -> DataFrame:
    """A row for every :class:`~spark_jobs.transforms.batches.Group` of ``tables``, with its fields as columns."""
    return (
        _groups("bronze", tables.bronze, _label_of_record(), has_batches=True)
        .unionAll(_groups("silver", tables.silver, F.lit(""), has_batches=True))
        .unionAll(_groups("attributions", tables.attributions, F.col("status"), has_batches=False))
        .unionAll(_groups("sessions", tables.sessions, F.col("ended_by"), has_batches=False))
    )


def still_quarantined(bronze: DataFrame) -> dict[str, int]:
    """By verdict, the records of ``bronze`` that are still in quarantine."""
    counts = in_quarantine(bronze).groupBy("verdict").count().collect()
    return dict(sorted((row["verdict"], row["count"]) for row in counts))


def key_accounts(
    tables: LakeTables, bronze_bounds: DataFrame, silver_bounds: DataFrame, settings: Settings
) -> DataFrame:
    """One row per event key: how often it occurs in each table.

    Args:
        tables: the lake.
        bronze_bounds: :func:`spark_jobs.transforms.batches.newest_before` of bronze, as columns ``ingest_us`` and
            ``newest_before_us``.
        silver_bounds: the same for silver.
        settings: the watermarks, which decide what can have been late.

    Returns:
        ``key``: a 64-bit hash of type and id; if two events share one, their counts add up, as they do in the totals.
        As bigint: ``received`` (records with verdict ok), ``late`` (of these, records that can have been late for
        deduplicate), ``kept`` (rows of silver), ``joinable`` (of these, rows that the join must emit with or without a
        counterpart), ``join_late``, ``session_late`` (of these, rows that can have been late there), ``attributed``,
        ``sessioned`` (rows of gold that contain the event), ``initial`` (events of the initial state), ``userless``
        (rows of silver that are in no session because they have no user), ``late_found`` (late events that may correct
        gold), ``late_expired`` (late events that may not any more).
    """
    marked = (
        _received(tables.bronze, bronze_bounds, settings)
        .unionAll(_kept(tables.silver, silver_bounds, settings))
        .unionAll(_attributed(tables.attributions))
        .unionAll(_in_sessions(tables.sessions))
    )
    if tables.initial is not None:
        marked = marked.unionAll(_marked(tables.initial, initial=True))
    if tables.late_events is not None:
        is_expired = F.col("is_expired")
        marked = marked.unionAll(_marked(tables.late_events, late_found=~is_expired, late_expired=is_expired))
    # Shuffled before counting: until then nearly every key occurs once per partition, and a partial count would only
    # send nine numbers through the shuffle instead of one.
    together = marked.repartition(F.col("key"))
    return together.groupBy("key").agg(*[F.sum(_has(mark)).alias(mark) for mark in _MARKS])


def totals(keys: DataFrame) -> DataFrame:
    """The sums of the ledger over ``keys`` (see :func:`key_accounts`), as one row.

    Returns:
        ``kept``, ``duplicates``, ``late``, ``unaccounted``, ``surplus``, ``attribution_late``, ``attribution_open``,
        ``session_late``, ``session_open``, ``session_initial``, ``session_userless``, ``late_found``,
        ``late_expired``, as defined by
        :class:`spark_jobs.contracts.ledger.Ledger`.
    """
    is_kept = F.col("kept") > 0
    lost = F.col("kept") + F.col("initial") - F.col("userless") - F.col("sessioned")
    in_time = F.col("received") - F.col("late")
    is_unjoined = (F.col("joinable") > 0) & (F.col("attributed") == 0)
    can_be_late, can_miss_session = F.col("join_late") > 0, F.col("session_late") > 0
    # A repair brings late events to gold, and to gold alone.
    too_many = F.greatest(-lost - F.col("late_found"), F.lit(0))
    surplus = F.greatest(F.col("kept") - F.col("received"), F.lit(0)) + too_many
    sums = {
        "kept": F.col("kept"),
        "duplicates": F.when(is_kept, F.greatest(F.col("received") - F.col("kept"), F.lit(0))),
        "late": F.when(~is_kept, F.col("late")),
        "unaccounted": F.when(~is_kept, in_time),
        "surplus": surplus + F.when(~is_kept & (F.col("attributed") > 0) & (F.col("late_found") == 0), 1).otherwise(0),
        "attribution_late": F.when(is_unjoined & can_be_late, F.col("kept")),
        "attribution_open": F.when(is_unjoined & ~can_be_late, F.col("kept")),
        "session_late": F.when((lost > 0) & can_miss_session, lost),
        "session_open": F.when((lost > 0) & ~can_miss_session, lost),
        "session_initial": F.col("initial"),
        "session_userless": F.col("userless"),
        "late_found": F.col("late_found"),
        "late_expired": F.col("late_expired"),
    }
    return keys.agg(*[F.coalesce(F.sum(value), F.lit(0)).alias(name) for name, value in sums.items()])


def _label_of_record() -> Column:
    return F.when(F.col("requeued_from").isNotNull(), F.lit(REQUEUED)).otherwise(F.col("verdict"))


def _groups(name: str, rows: DataFrame, label: Column, *, has_batches: bool) -> DataFrame:
    nothing = F.lit(0).cast("bigint")
    batch = F.unix_micros("ingest_time") if has_batches else nothing
    newest = F.unix_micros(F.max("event_time")) if has_batches else nothing
    return (
        rows.groupBy(label.alias("label"), batch.alias("ingest_us"))
        .agg(F.coalesce(newest, nothing).alias("newest_us"), F.count("*").alias("rows"))
        .select(F.lit(name).alias("table"), "label", "ingest_us", "newest_us", "rows")
    )


def _received(bronze: DataFrame, newest: DataFrame, settings: Settings) -> DataFrame:
    ok = bronze.where(F.col("verdict") == OK)
    if settings.deduplicate.mode is DeduplicateMode.FOREVER:
        return _marked(ok, received=True)
    return _marked(_of_batch(ok, newest), received=True, late=_behind(microseconds(settings.deduplicate.watermark)))


def _kept(silver: DataFrame, newest: DataFrame, settings: Settings) -> DataFrame:
    attribute, sessionize = settings.attribute, settings.sessionize
    return _marked(
        _of_batch(silver.where(F.col("event_type") != HEARTBEAT), newest),
        kept=True,
        joinable=F.col("event_type").isin(*_preserved(settings)),
        join_late=_behind(microseconds(max(attribute.impression_watermark, attribute.click_watermark))),
        session_late=_behind(microseconds(sessionize.watermark + sessionize.gap)),
        userless=F.col("user_id").isNull(),
    )


def _attributed(attributions: DataFrame) -> DataFrame:
    sides = [
        F.when(F.col(time).isNotNull(), F.struct(F.lit(event_type).alias("event_type"), F.col(key).alias("event_id")))
        for time, event_type, key in (
            ("impression_time", IMPRESSION, "impression_id"),
            ("click_time", CLICK, "click_id"),
        )
    ]
    return _marked(attributions.select(F.inline(F.array_compact(F.array(*sides)))), attributed=True)


def _in_sessions(sessions: DataFrame) -> DataFrame:
    return _marked(sessions.select(F.inline("events")), sessioned=True)


def _marked(rows: DataFrame, **marks: Column | bool) -> DataFrame:
    """``rows`` (``event_type``, ``event_id`` and more) as ``key`` and ``marks``, one bit per mark."""
    bits = [F.when(F.lit(marks[name]), F.lit(1 << _MARKS.index(name))).otherwise(F.lit(0)) for name in marks]
    return rows.select(F.xxhash64("event_type", "event_id").alias("key"), reduce(add, bits).alias("marks"))


def _has(mark: str) -> Column:
    return F.shiftright("marks", _MARKS.index(mark)).bitwiseAND(1).cast("bigint")


def _of_batch(rows: DataFrame, newest: DataFrame) -> DataFrame:
    """``rows`` with the ``newest_before_us`` of their batch."""
    return rows.join(F.broadcast(newest), on=F.unix_micros("ingest_time") == F.col("ingest_us"), how="left")


def _behind(watermark_us: int) -> Column:
    return F.unix_micros("event_time") <= F.col("newest_before_us") - watermark_us


def _preserved(settings: Settings) -> tuple[str, ...]:
    """The event types that the join emits with or without a counterpart."""
    return {
        JoinType.FULL_OUTER: (IMPRESSION, CLICK),
        JoinType.LEFT_OUTER: (IMPRESSION,),
        JoinType.RIGHT_OUTER: (CLICK,),
        JoinType.INNER: (),
    }[settings.attribute.join]
