"""Heartbeats: they move event time on while no event does."""

import threading
from collections.abc import Sequence
from datetime import datetime, timedelta

from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from spark_jobs.config.choices import Trigger
from spark_jobs.config.durations import EPOCH, microseconds
from spark_jobs.config.sections import JobSettings
from spark_jobs.contract.events import HEARTBEAT
from spark_jobs.contract.tables import SILVER_EVENTS
from spark_jobs.lake.batches import keep_up
from spark_jobs.lake.notes import CommitNote
from spark_jobs.queries.output import interval_of
from spark_jobs.queries.query import Query
from spark_jobs.spark.open_lake import OpenLake
from spark_jobs.spark.write_delta import append_rows
from spark_jobs.streams.reports import QueryReport
from spark_jobs.streams.silence import Moment, QueryView, Silence
from spark_jobs.streams.silver_times import SilverTimes

_WRITER = "heartbeat idle"
_ASAP = timedelta(seconds=1)
"""More than the interval at which queries with ``job.trigger = asap`` look for data."""


def view_of(query: Query, running: StreamingQuery, report: QueryReport | None, settings: JobSettings) -> QueryView:
    """A view of ``query`` now, by its status and its last ``report``."""
    status = running.status
    backlog = (report.backlog_records, report.backlog_bytes) if report else ()
    return QueryView(
        batch=-1 if report is None or report.batch_id is None else report.batch_id,
        is_active=status["isTriggerActive"],
        has_data=status["isDataAvailable"],
        is_behind=any(backlog),
        interval_s=(_ASAP if settings.trigger is Trigger.ASAP else interval_of(settings, query)).total_seconds(),
    )


class Heartbeats:
    """Writes a heartbeat to silver each time that no event has moved event time for ``idle_after``.

    In silence event time is taken to pass as fast as the wall clock: a heartbeat lies as far past the newest time in
    silver as the silence has lasted. So nothing closes sooner than it would if events kept coming, and an event that
    comes after the silence is as late as it would have been. A heartbeat never lies ahead of the wall clock. Where
    silver's newest time does, after a drain or an event from a fast clock, none comes until the clock has passed it.

    ::

        events       e 12:00                                        f 12:07
        wall clock   12:00:02    12:01:02    12:02:02    …          12:07:02
        heartbeats               12:01:00    12:02:00    …  12:07:00

    One heartbeat moves the watermark, and the next triggers the batch that runs under it.
    """

    def __init__(self, lake: OpenLake, silver: threading.Lock) -> None:
        """Starts to listen for silence.

        Args:
            lake: whose silver gets the heartbeats.
            silver: held while silver is written: it has one writer at a time.
        """
        self._lake, self._silver = lake, silver
        self._silence, self._times = Silence(lake.settings.heartbeat.idle_after), SilverTimes(lake)
        self._base: datetime | None = None
        """The newest time in silver when the silence began."""
        self._batch: int | None = None

    def tick(self, now: Moment, views: Sequence[QueryView]) -> datetime | None:
        """Writes a heartbeat if one is due; to be called every second or so.

        Args:
            now: read before the states of the queries.
            views: of the queries that lead to silver, in the order in which rows flow.

        Returns:
            The event time of the heartbeat; None if no heartbeat is due.
        """
        if not self._silence.idle_after:
            return None
        if self._silence.observe(now, views):
            self._base = None
        is_due = self._silence.is_due
        if (is_due or views[-1].batch != self._batch) and self._times.follow():
            self._silence.restart(now)
            self._base, is_due = None, False
        self._batch = views[-1].batch
        return self._beat(now) if is_due else None

    def _beat(self, now: Moment) -> datetime | None:
        newest = self._times.newest()
        if newest is None:  # nothing is open
            self._silence.postpone()
            return None
        self._base = self._base or newest
        beat = min(self._base + self._silence.length, now.wall)
        if beat <= newest:
            self._silence.postpone()
            return None
        if not self._silver.acquire(blocking=False):  # a batch is being written, and may bring events
            return None
        try:
            self._append(beat)
        finally:
            self._silver.release()
        self._silence.postpone()
        return beat

    def _append(self, beat: datetime) -> None:
        event_id, number = f"idle-{beat.isoformat()}", microseconds(beat - EPOCH)
        # Events that were received by then lie before it in silver, and those after it were received later.
        as_of = self._silence.through.wall
        append_heartbeat(self._lake, beat, event_id, writer=_WRITER, number=number, as_of=as_of)


def append_heartbeat(
    lake: OpenLake, event_time: datetime, event_id: str, *, writer: str, number: int, as_of: datetime | None = None
) -> None:
    """Appends a heartbeat at ``event_time`` to silver, unless ``writer`` has already appended this ``number``.

    Must be called while no batch of the query ``deduplicate`` is being written: silver has one writer.

    Args:
        lake: whose silver.
        event_time: up to where it moves event time; with zone.
        event_id: its id.
        writer: who writes; with ``number`` it makes the append exactly-once.
        number: larger for each heartbeat of ``writer``.
        as_of: its ``ingest_time``, with zone: silver holds every event that was received by then. None: now.
    """
    ingest_time = F.current_timestamp() if as_of is None else F.lit(as_of)
    beat = {"event_type": F.lit(HEARTBEAT), "event_id": F.lit(event_id), "event_time": F.lit(event_time)}
    beat |= {"ingest_time": ingest_time, "event_date": F.to_date(F.lit(event_time)), "is_last": F.lit(False)}
    row = lake.spark.range(1).select(
        *[
            beat.get(column.name, F.lit(None)).cast(column.sql_type).alias(column.name)
            for column in SILVER_EVENTS.columns
        ]
    )
    append_rows(row, lake, SILVER_EVENTS, CommitNote(writer=writer, batch=number))
    keep_up(lake, SILVER_EVENTS)
