"""Moving event time on while nothing arrives."""

import threading
from datetime import UTC, datetime, timedelta

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_jobs.contracts.durations import microseconds
from spark_jobs.contracts.jobs import DEDUPLICATE, INGEST
from spark_jobs.contracts.lake import Lake
from spark_jobs.contracts.settings import HeartbeatSettings
from spark_jobs.contracts.tables import SILVER_EVENTS
from spark_jobs.jobs.deduplicate import append_heartbeat
from spark_jobs.runtime.progress import ProgressListener
from spark_jobs.sources.delta import read_table

_WRITER = "heartbeat idle"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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

    def __init__(
        self,
        spark: SparkSession,
        lake: Lake,
        settings: HeartbeatSettings,
        progress: ProgressListener,
        silver: threading.Lock,
    ) -> None:
        """Begins to listen for silence.

        Args:
            spark: the session.
            lake: whose silver gets the heartbeats.
            settings: how long silence must last.
            progress: from which the queries' input is read.
            silver: held while silver is written: it has one writer at a time.
        """
        self._spark, self._lake, self._settings = spark, lake, settings
        self._progress, self._silver = progress, silver
        self._rows_seen: tuple[int, int] | None = None
        self._quiet_since: datetime | None = None
        self._newest: datetime | None = None
        self._next_beat: datetime | None = None

    def tick(self, now: datetime) -> bool:
        """Writes a heartbeat if one is due at ``now`` (UTC); to be called often. Returns whether it did."""
        if not self._settings.idle_after:
            return False
        seen = (self._progress.progress(INGEST).input_rows, self._progress.progress(DEDUPLICATE).input_rows)
        if seen != self._rows_seen:
            self._rows_seen, self._quiet_since, self._newest = seen, now, None
            self._next_beat = now + self._settings.idle_after
        if self._next_beat is None or now < self._next_beat:
            return False
        with self._silver:
            return self._beat(now)

    def _beat(self, now: datetime) -> bool:
        assert self._quiet_since is not None  # noqa: S101 tick has seen to it
        if self._newest is None and self._lake.has(SILVER_EVENTS):
            self._newest = self._newest_event()
        self._next_beat = now + self._settings.idle_after
        if self._newest is None:
            return False  # time has not begun
        beat = self._newest + (now - self._quiet_since)
        number = microseconds(beat - _EPOCH)
        append_heartbeat(self._spark, self._lake, beat, f"idle-{beat.isoformat()}", writer=_WRITER, number=number)
        return True

    def _newest_event(self) -> datetime | None:
        """The newest time in silver, heartbeats included: those of an earlier silence are not to be undone."""
        events = read_table(self._spark, self._lake, SILVER_EVENTS)
        (newest_us,) = events.agg(F.unix_micros(F.max("event_time"))).first() or (None,)
        return None if newest_us is None else _EPOCH + timedelta(microseconds=newest_us)
