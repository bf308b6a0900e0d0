"""Draining a lake: event time moves past everything that is open, so that it closes."""

from datetime import datetime, timedelta

from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from spark_jobs.config.durations import ROUNDING
from spark_jobs.config.settings import Settings
from spark_jobs.contract.events import HEARTBEAT
from spark_jobs.contract.tables import SILVER_EVENTS
from spark_jobs.errors import QueryFailedError
from spark_jobs.queries.registry import QUERIES, readers_of
from spark_jobs.spark.event_times import newest_event_time
from spark_jobs.spark.open_lake import OpenLake
from spark_jobs.streams.heartbeats import append_heartbeat
from spark_jobs.streams.lockstep import Flow


def drain_lake(lake: OpenLake, flow: Flow) -> datetime | None:
    """Moves event time past everything that the queries of ``flow`` hold open.

    Afterwards, events up to the times of :func:`late_up_to` are late.

    A batch closes everything behind the watermark that the previous batch left. So it takes two heartbeats: the first
    moves the watermark, the second triggers a batch that runs under it. Each is consumed before the next is written,
    and is written only if it is not there yet, so a drain that is killed in between resumes where it stopped.

    Returns:
        The event time that it moved to; None if silver holds no event.

    Raises:
        QueryFailedError: a query still holds state.
    """
    events = lake.read(SILVER_EVENTS).where(F.col("event_type") != HEARTBEAT)
    last = newest_event_time(events)
    if last is None:
        return None
    beat_time = last + drain_lead(lake.settings)
    for beat in (1, 2):
        event_id = f"drain-{beat_time.isoformat()}-{beat}"
        append_heartbeat(lake, beat_time, event_id, writer=f"heartbeat {event_id}", number=0)
        flow.finish(SILVER_EVENTS)
    for query, running in flow.running.items():
        if query.watermark(lake.settings) is not None:  # event time closes nothing in the others
            _check_closed(running)
    return beat_time


def _check_closed(query: StreamingQuery) -> None:
    """Raises a QueryFailedError if a drain left state in ``query``; state that is not counted goes unnoticed."""
    batch = query.lastProgress
    left = sum(operator.numRowsTotal for operator in batch.stateOperators) if batch else 0
    if left:
        raise QueryFailedError(
            f"query {query.name} still holds {left} rows of state after the drain: its watermark did not follow the "
            "heartbeats, so rows of gold are missing; keep the lake for inspection and report it"
        )


def drain_lead(settings: Settings) -> timedelta:
    """How far past the last event the heartbeat of a drain lies: just far enough to close everything."""
    # A millisecond more: the watermark has lost the last event's fraction of one, and some readers require more than
    # the rounding, not just as much.
    return max(query.closes_after(settings) for query in QUERIES) + ROUNDING + timedelta(milliseconds=1)


def late_up_to(settings: Settings, newest: datetime) -> dict[str, datetime]:
    """By table of gold, the latest time of events that are late for it once silver's newest time is ``newest``."""
    late = {}
    for query in readers_of(SILVER_EVENTS):
        delay = query.watermark(settings)
        if delay is not None:
            late[query.writes.name] = newest - delay - query.extra_delay(settings)
    return late
