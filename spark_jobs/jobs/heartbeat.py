"""Moving event time on while nothing arrives."""

import threading
from dataclasses import dataclass
from datetime import datetime, timedelta

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_jobs.contracts.commits import CommitNote
from spark_jobs.contracts.durations import EPOCH, microseconds
from spark_jobs.contracts.events import HEARTBEAT
from spark_jobs.contracts.lake import Lake
from spark_jobs.contracts.sections import HeartbeatSettings
from spark_jobs.contracts.tables import SILVER_EVENTS
from spark_jobs.sinks.delta import append_rows
from spark_jobs.sources.delta import newest_event_time, read_table

_WRITER = "heartbeat idle"


@dataclass
class Silence:
    """How long nothing has arrived, and when that is worth a heartbeat: each ``idle_after`` of it (0: never)."""

    idle_after: timedelta
    rows_seen: int = -1
    since: datetime | None = None
    next_beat: datetime | None = None

    def observe(self, now: datetime, *, rows: int, is_busy: bool) -> bool:
        """Takes notice of ``now``. Returns whether silence has just begun anew.

        Args:
            now: with zone.
            rows: all that has ever been read.
            is_busy: whether something is being read, or waits to be: a long batch is no silence.
        """
        is_anew = is_busy or rows != self.rows_seen or self.since is None
        if is_anew:
            self.rows_seen, self.since, self.next_beat = rows, now, now + self.idle_after
        return is_anew

    def length(self, now: datetime) -> timedelta | None:
        """How long it has lasted, if a heartbeat is due; the next one is due ``idle_after`` later."""
        if not self.idle_after or self.since is None or self.next_beat is None or now < self.next_beat:
            return None
        self.next_beat = now + self.idle_after
        return now - self.since


class Heartbeats:
    """Writes a heartbeat to silver each time that nothing has arrived for ``idle_after``.

    While nothing arrives event time is taken to pass as fast as the clock on the wall: a heartbeat lies as far past the
    newest event as the silence has lasted. So nothing is closed sooner than it would be if events came, and an event
    that comes after the silence is as late as it would have been.

    ::

        events       e 12:00                                        f 12:07
        on the wall  12:00:02    12:01:02    12:02:02    …          12:07:02
        heartbeats               12:01:00    12:02:00    …  12:07:00

    One heartbeat moves the watermark, and the next makes the batch that runs under it.
    """

    def __init__(self, spark: SparkSession, lake: Lake, settings: HeartbeatSettings, silver: threading.Lock) -> None:
        """Begins to listen for silence.

        Args:
            spark: the session.
            lake: whose silver gets the heartbeats.
            settings: how long silence must last.
            silver: held while silver is written: it has one writer at a time.
        """
        self._spark, self._lake, self._silver = spark, lake, silver
        self._silence = Silence(settings.idle_after)
        self._newest: datetime | None = None
        self._has_silver = False

    def tick(self, now: datetime, *, rows: int, is_busy: bool, is_waiting: bool) -> bool:
        """Writes a heartbeat if one is due at ``now`` (UTC); to be called often. Returns whether it did.

        Args:
            now: the clock on the wall.
            rows: all that the queries have read so far.
            is_busy: whether one of them reads, or has something to read.
            is_waiting: whether all of them have looked for something to read, and wait to look again. A source that
                does not answer is not silent.
        """
        if self._silence.observe(now, rows=rows, is_busy=is_busy):
            self._newest = None
        if not is_waiting:
            return False
        # To ask is to list the table's log, which is no thing to do at every tick.
        self._has_silver = self._has_silver or self._lake.has(SILVER_EVENTS)
        if not self._has_silver:
            return False
        elapsed = self._silence.length(now)
        if elapsed is None:
            return False
        with self._silver:
            # Heartbeats of an earlier silence included: they are not to be undone.
            silver = read_table(self._spark, self._lake, SILVER_EVENTS)
            self._newest = self._newest or newest_event_time(silver) or EPOCH
            beat = self._newest + elapsed
            number = microseconds(beat - EPOCH)
            event_id = f"idle-{beat.isoformat()}"
            append_heartbeat(self._spark, self._lake, beat, event_id, writer=_WRITER, number=number)
        return True


def append_heartbeat(
    spark: SparkSession, lake: Lake, event_time: datetime, event_id: str, *, writer: str, number: int
) -> None:
    """Appends a heartbeat at ``event_time`` (with zone) to silver, unless ``writer`` has appended this ``number``.

    Must be called while no batch of the query ``deduplicate`` is being written: silver has one writer.
    """
    beat = {"event_type": F.lit(HEARTBEAT), "event_id": F.lit(event_id), "event_time": F.lit(event_time)}
    beat |= {"ingest_time": F.current_timestamp(), "event_date": F.to_date(F.lit(event_time)), "is_last": F.lit(False)}
    row = spark.range(1).select(
        *[
            beat.get(column.name, F.lit(None)).cast(column.sql_type).alias(column.name)
            for column in SILVER_EVENTS.columns
        ]
    )
    append_rows(row, lake, SILVER_EVENTS, CommitNote(writer=writer, batch=number))
