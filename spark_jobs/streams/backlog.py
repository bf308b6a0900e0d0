"""Keeps silver from running ahead in a backlog: after each batch of ``ingest`` it says how far bronze may be read.

Of Kafka, a batch that is not full has taken all there was, so nothing is held back, and nobody is asked. After a full
one the brokers say which partitions have more, and bronze how far each of them has come. Of folders, each file that is
not read yet says by its first event where it begins.

What is decided here is not stored: the offsets of ``deduplicate`` record what it has read. After a restart the files
say the same as before; of Kafka, everything new waits for the next batch.
"""

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, Protocol

from pyspark.sql import functions as F

from spark_jobs.config.choices import FileOrder
from spark_jobs.config.durations import time_of_us
from spark_jobs.contract.events import OK
from spark_jobs.contract.tables import BRONZE_EVENTS
from spark_jobs.errors import SourceError
from spark_jobs.ingest.alignment import STEP_US, Alignment, Taken
from spark_jobs.ingest.files_read import FilesRead
from spark_jobs.ingest.input_files import folders_of
from spark_jobs.ingest.query import NAME as INGEST
from spark_jobs.ingest.topics import unread_partitions
from spark_jobs.ingest.unread_files import UnreadFiles
from spark_jobs.lake.notes import EVERYTHING, NOTHING, CommitNote, read_plan
from spark_jobs.queries.notes import last_note
from spark_jobs.queries.places import checkpoint_in_use, checkpoint_key
from spark_jobs.spark.aligned import AlignedTable
from spark_jobs.spark.open_lake import OpenLake
from spark_jobs.traffic_rules.kinds.common import window_start_us

_ROWS_AT_ONCE: Final = 1_000_000
"""The rows of files that go to silver in one batch, where more are held back."""
_ALL_READ: Final = Taken({}, {})
_log = logging.getLogger(__name__)


class Backlog(Protocol):
    """The records that are still to be read, and how far silver may read those that were."""

    @property
    def is_held(self) -> bool:
        """Whether events are held back, or may be."""
        ...

    def batch(self, note: CommitNote) -> AbstractContextManager[None]:
        """The context in which the batch of ``ingest`` with that note is written."""
        ...

    def catch_up(self) -> None:
        """To be called now and then: lets silver read versions that others than ``ingest`` have written."""
        ...


@contextmanager
def backlog_of(lake: OpenLake, source: str | Path | None) -> Iterator[Backlog]:
    """The backlog while ``ingest`` reads: ``source``, or else the folders or topics of the settings.

    Raises:
        SourceError: a folder does not exist, or has no files to read.
    """
    if not folders_of(lake.settings, source):
        with _aligned(lake) as bronze:
            yield _KafkaBacklog(lake, bronze)
    elif lake.settings.ingest.file_order is FileOrder.EVENT_TIME:
        with _aligned(lake) as bronze:
            yield _FileBacklog(lake, bronze, source)
    else:
        yield NoBacklog()


@contextmanager
def _aligned(lake: OpenLake) -> Iterator[AlignedTable]:
    bronze = AlignedTable(lake.spark, lake.table(BRONZE_EVENTS))
    try:
        yield bronze
    finally:
        bronze.release()


class NoBacklog(Backlog):
    """Silver reads bronze as it comes."""

    is_held = False

    @contextmanager
    def batch(self, note: CommitNote) -> Iterator[None]:  # noqa: ARG002 it is the same for all
        """See :class:`Backlog`."""
        yield

    def catch_up(self) -> None:
        """See :class:`Backlog`."""


class _AlignedBacklog(Backlog, ABC):
    def __init__(self, lake: OpenLake, bronze: AlignedTable, rows_at_once: int) -> None:
        self._lake, self._bronze, self._lock = lake, bronze, threading.Lock()
        self._checkpoint = checkpoint_key(INGEST, checkpoint_in_use(lake, INGEST))
        self._alignment = Alignment(rows_at_once)

    @property
    def is_held(self) -> bool:
        return self._alignment.frontier_us != EVERYTHING

    @contextmanager
    def batch(self, note: CommitNote) -> Iterator[None]:
        with self._lock:
            yield
            taken = self._taken(note)
            self._publish(self._alignment.advance(taken))
            if taken.unread:
                _log.info("%d to be read further: events after %s wait for %s", len(taken.unread), *_slowest(taken))

    def catch_up(self) -> None:
        if self._bronze.is_overtaken:
            with self._lock:
                if self._bronze.is_overtaken:  # the batch that held the lock was not the reason
                    self._publish([self._alignment.frontier_us])

    def _publish(self, frontiers: list[int]) -> None:
        newest = self._lake.newest_commit(BRONZE_EVENTS.path)
        self._bronze.publish(-1 if newest is None else newest, frontiers)

    @abstractmethod
    def _taken(self, note: CommitNote) -> Taken:
        """The records that the batch of ``note`` has taken, once they are in bronze."""

    def _events_of(self, note: CommitNote) -> tuple[dict[str, int], Counter[int]]:
        """The events that the batch of ``note`` has brought: the newest of each partition, and how many by step."""
        plan = read_plan(self._lake.files.read(f"{self._checkpoint}/offsets/{note.batch}") or b"")
        received = time_of_us(note.received_us or plan.at_ms * 1000)
        rows = self._lake.read(BRONZE_EVENTS).where(F.col("ingest_time") == F.lit(received))
        step = window_start_us(timedelta(microseconds=STEP_US)).alias("step")
        origin = F.substring_index("source", "/", 2).alias("origin")
        good = rows.where(F.col("verdict") == OK)
        found = good.groupBy(origin, step).agg(F.max(F.unix_micros("event_time")), F.count("*")).collect()
        newest: dict[str, int] = {}
        counts: Counter[int] = Counter()
        for name, begin, last_us, count in found:
            newest[name] = max(last_us, newest.get(name, last_us))
            counts[begin] += count
        return newest, counts


class _KafkaBacklog(_AlignedBacklog):
    def __init__(self, lake: OpenLake, bronze: AlignedTable) -> None:
        super().__init__(lake, bronze, lake.settings.kafka.max_offsets_per_trigger)
        self._patience_s = lake.settings.kafka.wait_for_silent.total_seconds()
        self._unread_now: set[str] = set()
        self._heard: dict[str, float] = {}
        """By partition, when its last event came, if others wait for it when it is silent."""
        note = last_note(lake, INGEST)
        if note and self._unread(note.reached[0]):
            self._alignment.frontier_us = NOTHING
        # The first batch may be one that was written before a crash, so it begins before its own note.
        self._reached: Any = None
        self._publish([self._alignment.frontier_us])

    def _taken(self, note: CommitNote) -> Taken:
        begin, self._reached = self._reached, note.reached[0]
        is_full = begin is None or self._is_full(begin, self._reached)
        self._unread_now = self._unread(self._reached) if is_full else set()
        if not self._unread_now and not self._patience_s:
            return _ALL_READ
        newest, rows = self._events_of(note)
        if self._patience_s:
            self._heard |= dict.fromkeys(newest, time.monotonic())
        return Taken(newest, rows, unread=self._unread_now | self._silent())

    def catch_up(self) -> None:
        """See :class:`Backlog`; partitions may also have been silent for too long meanwhile."""
        super().catch_up()
        if self._heard and self.is_held and not self._lock.locked():
            with self._lock:
                self._publish(self._alignment.advance(Taken({}, {}, unread=self._unread_now | self._silent())))

    def _silent(self) -> set[str]:
        """The partitions that are waited for although they have been read to their end."""
        return {one for one, at_s in self._heard.items() if time.monotonic() - at_s < self._patience_s}

    def _is_full(self, begin: Any, end: Any) -> bool:
        # A new partition begins wherever its first record is.
        taken = [
            offset - begin.get(topic, {}).get(number, 0)
            for topic, offsets in end.items()
            for number, offset in offsets.items()
        ]
        # Spark rounds the share of each partition down.
        return bool(sum(taken) >= self._lake.settings.kafka.max_offsets_per_trigger - len(taken))

    def _unread(self, reached: Any) -> set[str]:
        """The partitions with more to read; all, if the brokers do not answer."""
        jvm = self._lake.spark.sparkContext._jvm  # noqa: SLF001 there is no public API for the JVM
        try:
            return unread_partitions(jvm, self._lake.settings.kafka_of_sources, reached)
        except SourceError as error:
            _log.warning("%s; what is ahead waits until they answer", error)
            return {f"{topic}/{number}" for topic, numbers in reached.items() for number in numbers}


class _FileBacklog(_AlignedBacklog):
    def __init__(self, lake: OpenLake, bronze: AlignedTable, source: str | Path | None) -> None:
        super().__init__(lake, bronze, _ROWS_AT_ONCE)
        self._files, self._read = UnreadFiles(lake.settings, source), FilesRead(lake, self._checkpoint)
        note = last_note(lake, INGEST)
        self._publish(self._alignment.advance(self._beginning_of_rest(note)))

    def _taken(self, note: CommitNote) -> Taken:
        rest = self._beginning_of_rest(note)
        if not rest.unread and not self.is_held:
            return _ALL_READ
        _, rows = self._events_of(note)
        return Taken(rest.newest, rows, unread=rest.unread)

    def _beginning_of_rest(self, note: CommitNote | None) -> Taken:
        """Where the files begin that are not read after the batch of ``note``."""
        read = self._read.until(note.reached) if note else {}
        first = self._files.first_events(read)
        known = {file: time_us for file, time_us in first.items() if time_us is not None}
        return Taken(known, {}, unread=set(first))


def _slowest(taken: Taken) -> tuple[str, str]:
    """The event time of the slowest origin, and its name."""
    name = min(taken.unread, key=lambda one: (taken.newest.get(one, NOTHING), one))
    time_us = taken.newest.get(name)
    return "any time" if time_us is None else time_of_us(time_us).isoformat(timespec="seconds"), name
