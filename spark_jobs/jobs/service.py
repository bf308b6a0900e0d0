"""A job that runs until it is told to stop: ``adloom job``."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum, auto
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark_jobs.contracts.choices import Trigger
from spark_jobs.contracts.errors import AdloomError
from spark_jobs.contracts.jobs import DEDUPLICATE, DEDUPLICATE_JOB, INGEST, QUERIES_OF_JOB
from spark_jobs.contracts.lake import Lake
from spark_jobs.contracts.manifest import FILES, KAFKA
from spark_jobs.contracts.settings import Settings
from spark_jobs.contracts.tables import BRONZE_EVENTS, SILVER_EVENTS
from spark_jobs.jobs.deduplicate import start_deduplicate, start_ingest
from spark_jobs.jobs.gold import STARTS
from spark_jobs.jobs.heartbeat import Heartbeats
from spark_jobs.runtime.checkpoints import claim
from spark_jobs.runtime.failures import naming_the_cause
from spark_jobs.runtime.lock import Check, hold_job
from spark_jobs.runtime.manifests import read_manifest
from spark_jobs.runtime.metrics import QueryMetrics, serve_metrics
from spark_jobs.runtime.progress import ProgressFiles, listening
from spark_jobs.runtime.stopping import StopRequest, finish_batches
from spark_jobs.runtime.wanted import asked_to_stop, forget_wish_to_stop
from spark_jobs.sinks.delta import start_of
from spark_jobs.sources.files import read_files
from spark_jobs.sources.kafka import check_topics, read_kafka, starting_offsets

_TICK_S = 0.5
_LOOK_S = 5.0
"""How often a driver looks whether it is asked to stop."""
_log = logging.getLogger(__name__)


class Outcome(Enum):
    """How a job came to its end."""

    DONE = auto()
    """All that was there is processed (``job.trigger = available_now``)."""
    DRAINED = auto()
    """Its batches were finished, then its queries stopped."""
    BROKEN_OFF = auto()
    """Batches were running when it stopped; the next start does them again. Spark may not answer any more."""


@dataclass(frozen=True)
class _Query:
    """A query of a job: when it can be started, and how."""

    name: str
    is_ready: Callable[[dict[str, StreamingQuery]], bool]
    """Given the queries that have been started, by name."""
    start: Callable[[], StreamingQuery]


def run_deduplicate(
    spark: SparkSession, settings: Settings, lake: Lake, stop: StopRequest, source: Path | None
) -> Outcome:
    """Runs ingest and deduplicate until ``stop``, from the folder ``source`` or, if None, from Kafka.

    Raises:
        SourceError: there is nothing to read, or Kafka does not answer.
        LakeInUseError: the job is being run on this lake already.
        SettingsError: job.metrics cannot be listened on.
        CheckpointError: its checkpoints were made with other settings and cannot be used with these.
        QueryFailedError: a query ended with an error.
    """
    silver, progress, start = threading.Lock(), ProgressFiles(lake), partial(start_of, settings.job)
    records = _records(spark, settings, lake, source)
    to_the_end = settings.job.trigger is Trigger.AVAILABLE_NOW
    ingest = _Query(INGEST, lambda _: True, lambda: start_ingest(records, settings, lake, start=start(INGEST)))
    deduplicate = _Query(
        DEDUPLICATE,
        lambda running: lake.has(BRONZE_EVENTS) and not (to_the_end and running[INGEST].isActive),
        lambda: start_deduplicate(spark, settings, lake, start=start(DEDUPLICATE), within=lambda: silver),
    )
    heartbeats = Heartbeats(spark, lake, settings.heartbeat, silver)

    def on_tick(running: dict[str, StreamingQuery]) -> None:
        states = [query.status for query in running.values()]
        is_waiting = len(states) == len(QUERIES_OF_JOB[DEDUPLICATE_JOB]) and not any(
            state["isTriggerActive"] for state in states
        )
        if not to_the_end and heartbeats.tick(
            datetime.now(UTC),
            rows=sum(report.total_input_rows for report in progress.reports()),
            is_busy=any(state["isDataAvailable"] for state in states),
            is_waiting=is_waiting,
        ):
            _log.info("nothing arrives: time moved on by a heartbeat")

    with (
        hold_job(lake, DEDUPLICATE_JOB, settings.s3, spark=spark) as is_ours,
        _told(spark, settings, progress),
    ):
        _claim(lake, settings, DEDUPLICATE_JOB, FILES if source else KAFKA)
        return _run([ingest, deduplicate], settings, stop, _StopWish(lake, DEDUPLICATE_JOB), is_ours, on_tick)


def run_gold(spark: SparkSession, settings: Settings, lake: Lake, stop: StopRequest, job: str) -> Outcome:
    """Runs ``attribute`` or ``measure`` until ``stop``; waits for silver if it has not been begun.

    Raises:
        LakeInUseError: the job is being run on this lake already.
        SettingsError: job.metrics cannot be listened on.
        CheckpointError: its checkpoints were made with other settings and cannot be used with these.
        QueryFailedError: a query ended with an error.
    """

    def query(name: str, begin: Callable[..., StreamingQuery]) -> _Query:
        start = start_of(settings.job, name)
        return _Query(name, lambda _: lake.has(SILVER_EVENTS), lambda: begin(spark, settings, lake, start=start))

    queries = [query(name, begin) for name, begin in zip(QUERIES_OF_JOB[job], STARTS[job], strict=True)]
    with (
        hold_job(lake, job, settings.s3, spark=spark) as is_ours,
        _told(spark, settings, ProgressFiles(lake)),
    ):
        _claim(lake, settings, job, FILES)
        return _run(queries, settings, stop, _StopWish(lake, job), is_ours, lambda _: None)


@contextmanager
def _told(spark: SparkSession, settings: Settings, progress: ProgressFiles) -> Iterator[None]:
    """Has what the queries do written to files and served as metrics."""
    with listening(spark, progress), serve_metrics(settings.job.metrics, QueryMetrics(progress.reports)):
        yield


def _claim(lake: Lake, settings: Settings, job: str, source: str) -> None:
    for change in claim(lake, settings, QUERIES_OF_JOB[job], source=source):
        _log.warning(
            "%s: %s was %s when the checkpoint was begun and is %s: %s, %s",
            *(change.query, change.setting, change.before, change.now, change.verdict, change.why),
        )


def _records(spark: SparkSession, settings: Settings, lake: Lake, source: Path | None) -> DataFrame:
    if source:
        return read_files(spark, source, settings.ingest)
    check_topics(settings.kafka)
    manifest = read_manifest(lake, INGEST, lake.version(INGEST))
    if not (manifest and manifest.begins_at):
        return read_kafka(spark, settings.kafka)
    offsets = starting_offsets(settings.kafka, manifest.begins_at)
    return read_kafka(spark, settings.kafka.model_copy(update={"starting_offsets": offsets}))


class _StopWish:
    """That this driver is asked to stop by word in the lake, where no signal reaches it."""

    def __init__(self, lake: Lake, job: str) -> None:
        """What an earlier driver was asked does not hold for this one."""
        self._lake, self._job = lake, job
        forget_wish_to_stop(lake, job)
        self._looked_at = time.monotonic()

    def heed(self, stop: StopRequest) -> None:
        """Makes the request if the lake asks for it; looks now and then only."""
        if time.monotonic() - self._looked_at < _LOOK_S:
            return
        self._looked_at = time.monotonic()
        try:
            is_asked = asked_to_stop(self._lake, self._job) is not None
        except (AdloomError, OSError) as error:
            _log.warning("%s: the lake does not say whether to stop: %s", self._job, error)
            return
        if is_asked:
            _log.info("%s: asked to stop by word in the lake", self._job)
            stop.ask()


def _run(
    queries: list[_Query],
    settings: Settings,
    stop: StopRequest,
    wish: _StopWish,
    is_ours: Check,
    on_tick: Callable[[dict[str, StreamingQuery]], None],
) -> Outcome:
    running: dict[str, StreamingQuery] = {}
    try:
        with naming_the_cause(lambda: list(running.values())):
            while not stop.is_made:
                for query in queries:
                    if query.name not in running and query.is_ready(running):
                        running[query.name] = query.start()
                        _log.info("%s: started", query.name)
                for started in running.values():
                    if failure := started.exception():
                        raise failure
                is_ours()
                on_tick(running)
                if _is_done(queries, running, settings):
                    return Outcome.DONE
                wish.heed(stop)
                stop.wait(_TICK_S)
    finally:
        _log.info("stopping: %s", ", ".join(running) or "no query was running")
        timeout_s = settings.job.stop_timeout.total_seconds()
        is_drained = finish_batches(list(running.values()), timeout_s=timeout_s, give_up=lambda: stop.is_urgent)
    return Outcome.DRAINED if is_drained else Outcome.BROKEN_OFF


def _is_done(queries: list[_Query], running: dict[str, StreamingQuery], settings: Settings) -> bool:
    """Whether all that can be done has been, where the job is to end by itself."""
    if settings.job.trigger is not Trigger.AVAILABLE_NOW:
        return False
    if any(query.isActive for query in running.values()):
        return False
    return all(query.name in running or not query.is_ready(running) for query in queries)
