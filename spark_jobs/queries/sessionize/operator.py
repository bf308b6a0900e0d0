"""A user's events in order, cut after a silence or after an event that says it is the last.

::

    gap 5min   12:00  12:03  12:08        12:13:01   12:14 last  12:15
               ├── a ─── b ──── c ┤        ├─ d ────── e ┤        ├─ f ─…
               a silence of exactly 5 min  e is the last          a new session, although
               does not end the session    of its session         the silence is short

*Watermark*: the largest event time seen minus ``sessionize.watermark``. Heartbeats and conversions advance it, and are
then dropped.
*State*: the events of each user's open window, until the watermark passes its last event by the gap. A user who is
never silent for longer than the gap keeps one window open forever, unless ``sessionize.longest`` cuts it.
*Late rows*: Spark drops an event whose own window (its time to its time + gap) lies before the watermark; the ledger
counts it.
*Order of arrival*: does not matter within the watermark; events are first sorted by (event_time, event_id, event_type).
*Cost*: native ``session_window``. The cuts at ``is_last`` are higher-order functions over the sorted array, seven times
as fast as a state function in Python.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.config.durations import microseconds, milliseconds
from spark_jobs.config.sections import SessionizeSettings
from spark_jobs.contract.events import VISIT_TYPES
from spark_jobs.contract.tables import SESSIONS
from spark_jobs.queries.open_events import chain_key, is_of_visit
from spark_jobs.spark.columns import after_watermark


def sessionize(events: DataFrame, settings: SessionizeSettings) -> DataFrame:
    """The sessions of each user of ``events``.

    Args:
        events: streaming; the columns of ``silver/events``, heartbeats included. Those without a user, and
            conversions, are in no session.
        settings: gap, longest session and watermark.

    Returns:
        The columns of ``gold/sessions``.

    Source: Spark's `Structured Streaming guide <https://spark.apache.org/docs/latest/streaming/>`_, session windows.
    """
    own = (
        events.select("event_type", "event_id", "event_time", "user_id", "is_last")
        .withWatermark("event_time", f"{milliseconds(settings.watermark)} milliseconds")
        .where(after_watermark("event_time", is_of_visit()))
    )
    # Events are sorted by these fields, in this order.
    event = F.struct("event_time", "event_id", "event_type", "is_last")
    gap = f"{microseconds(settings.gap)} microseconds"
    windows = own.groupBy(F.session_window("event_time", gap), *chain_key(settings.longest)).agg(
        F.collect_list(event).alias("found")
    )
    # A separate column: inside the cut it would be sorted again for each piece.
    in_order = windows.select("user_id", F.sort_array("found").alias("events"))
    return _sessions(in_order.select("user_id", F.explode(_cut_after_last(F.col("events"))).alias("piece")))


def _cut_after_last(events: Column) -> Column:
    """``events`` (sorted) as an array of arrays, each ended by ``is_last`` or by the end of ``events``."""
    first_last = F.array_position(events["is_last"], F.lit(True))
    # The cut is interpreted, event by event; few windows need it.
    return F.when(first_last.isin(0, F.size(events)), F.array(events)).otherwise(_pieces(events))


def _pieces(events: Column) -> Column:
    size = F.size(events)
    numbered = F.transform(events, lambda event, i: F.when(event["is_last"] | (i == size - 1), i + 1))
    ends = F.array_compact(numbered)
    starts = F.concat(F.array(F.lit(0)), F.slice(ends, 1, F.size(ends) - 1))
    return F.zip_with(starts, ends, lambda start, end: F.slice(events, start + 1, end - start))


def _sessions(pieces: DataFrame) -> DataFrame:
    piece, first, last = F.col("piece"), F.col("piece")[0], F.element_at("piece", -1)
    # Two sessions of a user can start at the same instant: is_last may cut between two events of that instant.
    identity = F.concat_ws(
        "\0", "user_id", F.unix_micros(first["event_time"]).cast("string"), first["event_id"], first["event_type"]
    )
    # Functions on whole arrays: those that take a lambda are interpreted, event by event.
    in_contract = F.arrays_zip(*[piece[name] for name in ("event_time", "event_type", "event_id")])
    return pieces.select(
        F.sha2(identity, 256).substr(1, 32).alias("session_id"),
        "user_id",
        first["event_time"].alias("session_start"),
        last["event_time"].alias("session_end"),
        F.when(last["is_last"], F.lit("is_last")).otherwise(F.lit("timeout")).alias("ended_by"),
        F.size(piece).cast("bigint").alias("event_count"),
        *[_count(piece, name).alias(f"{name}_count") for name in VISIT_TYPES],
        in_contract.alias("events"),
        F.to_date(first["event_time"]).alias("event_date"),
    ).select(*SESSIONS.column_names)


def _count(events: Column, event_type: str) -> Column:
    others = F.array_remove(events["event_type"], event_type)
    return (F.size(events) - F.size(others)).cast("bigint")
