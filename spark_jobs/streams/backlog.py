"""Keeps silver from running ahead in a backlog: after each batch of ``ingest`` it says how far bronze may be read.

A batch that is not full has taken all there was, so nothing is held back, and nobody is asked. After a full one the
brokers say which partitions have more, and bronze how far each of them has come. What is decided here is not stored:
the offsets of ``deduplicate`` record what it has read, and after a restart everything new waits for the next batch.
"""

import logging
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

from pyspark.sql import functions as F

from spark_jobs.config.durations import time_of_us
from spark_jobs.contract.events import OK
from spark_jobs.contract.tables import BRONZE_EVENTS
from spark_jobs.errors import SourceError
from spark_jobs.ingest.alignment import EVERYTHING, NOTHING, STEP_US, Alignment, Taken
from spark_jobs.ingest.query import NAME as INGEST
from spark_jobs.ingest.topics import unread_partitions
from spark_jobs.lake.notes import CommitNote, read_plan
from spark_jobs.queries.notes import last_note
from spark_jobs.queries.places import checkpoint_in_use, checkpoint_key
from spark_jobs.spark.aligned import AlignedTable
from spark_jobs.spark.open_lake import OpenLake

_log = logging.getLogger(__name__)


@contextmanager
def kafka_backlog(lake: OpenLake) -> Iterator["Backlog"]:
    """Aligns bronze while a job reads Kafka; until a batch was taken, what is new in bronze waits."""
    bronze = AlignedTable(lake.spark, lake.table(BRONZE_EVENTS))
    try:
        yield _KafkaBacklog(lake, bronze)
    finally:
        bronze.release()


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


class NoBacklog(Backlog):
    """Silver reads bronze as it comes."""

    is_held = False

    @contextmanager
    def batch(self, note: CommitNote) -> Iterator[None]:  # noqa: ARG002 it is the same for all
        """See :class:`Backlog`."""
        yield

    def catch_up(self) -> None:
        """See :class:`Backlog`."""


class _KafkaBacklog(Backlog):
    def __init__(self, lake: OpenLake, bronze: AlignedTable) -> None:
        self._lake, self._bronze, self._lock = lake, bronze, threading.Lock()
        self._alignment = Alignment(lake.settings.kafka.max_offsets_per_trigger)
        note = last_note(lake, INGEST)
        if note and self._unread(note.reached[0]):
            self._alignment.frontier_us = NOTHING
        # The first batch may be one that was written before a crash, so it begins before its own note.
        self._reached: Any = None
        self._publish([self._alignment.frontier_us])

    @property
    def is_held(self) -> bool:
        return self._alignment.frontier_us != EVERYTHING

    @contextmanager
    def batch(self, note: CommitNote) -> Iterator[None]:
        with self._lock:
            yield
            self._publish(self._alignment.advance(self._taken(note)))

    def catch_up(self) -> None:
        if self._bronze.is_overtaken:
            with self._lock:
                if self._bronze.is_overtaken:  # the batch that held the lock was not the reason
                    self._publish([self._alignment.frontier_us])

    def _publish(self, frontiers: list[int]) -> None:
        newest = self._lake.newest_commit(BRONZE_EVENTS.path)
        self._bronze.publish(-1 if newest is None else newest, frontiers)

    def _taken(self, note: CommitNote) -> Taken:
        begin, self._reached = self._reached, note.reached[0]
        is_full = begin is None or self._is_full(begin, self._reached)
        unread = self._unread(self._reached) if is_full else set()
        if not unread:
            return Taken({}, (), {})
        taken = self._read(note, unread)
        _log.info("%d partitions have more to read: events after %s wait for %s", len(unread), *_slowest(taken))
        return taken

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

    def _read(self, note: CommitNote, unread: set[str]) -> Taken:
        """The events that the batch of ``note`` has brought, by partition."""
        key = f"{checkpoint_key(INGEST, checkpoint_in_use(self._lake, INGEST))}/offsets/{note.batch}"
        planned_at = time_of_us(read_plan(self._lake.files.read(key) or b"").at_ms * 1000)
        rows = self._lake.read(BRONZE_EVENTS).where(F.col("ingest_time") == F.lit(planned_at))
        time_us = F.unix_micros("event_time")
        step = (time_us - F.pmod(time_us, F.lit(STEP_US))).alias("step")
        origin = F.substring_index("source", "/", 2).alias("origin")
        found = rows.where(F.col("verdict") == OK).groupBy(origin, step).agg(F.max(time_us), F.count("*")).collect()
        newest: dict[str, int] = {}
        counts: dict[int, int] = {}
        for name, begin, last_us, count in found:
            newest[name] = max(last_us, newest.get(name, last_us))
            counts[begin] = counts.get(begin, 0) + count
        return Taken(newest, unread, counts)


def _slowest(taken: Taken) -> tuple[str, str]:
    """The event time of the slowest partition, and its name."""
    name = min(taken.unread, key=lambda one: (taken.newest.get(one, NOTHING), one))
    time_us = taken.newest.get(name)
    return "any time" if time_us is None else time_of_us(time_us).isoformat(timespec="seconds"), name
