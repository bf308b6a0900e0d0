"""A job that runs until it is asked to stop: ``adloom job``."""

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from enum import Enum, auto
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from spark_jobs.config.choices import Trigger
from spark_jobs.config.settings import Settings
from spark_jobs.contract.contract import Contract
from spark_jobs.contract.tables import SILVER_EVENTS
from spark_jobs.ingest.arriving import arriving_files, arriving_in_kafka
from spark_jobs.ingest.input_files import folders_of
from spark_jobs.ingest.kafka import check_topics
from spark_jobs.ingest.schemas import schemas_of
from spark_jobs.lake.contracts import record
from spark_jobs.lake.layout import Lake
from spark_jobs.queries.initial_state import copy_initial, is_ready
from spark_jobs.queries.manifest import FILES, KAFKA
from spark_jobs.queries.output import BatchContext, start_of
from spark_jobs.queries.query import Query
from spark_jobs.queries.registry import QUERIES_OF_JOB, queries_of, writer_of
from spark_jobs.spark.failures import naming_the_cause
from spark_jobs.spark.open_lake import OpenLake
from spark_jobs.streams.backlog import NoBacklog, backlog_of
from spark_jobs.streams.checkpoints import claim
from spark_jobs.streams.hard_exit import finishing_batches, guarding_lock
from spark_jobs.streams.heartbeats import Heartbeats, view_of
from spark_jobs.streams.metrics import QueryMetrics, serve_metrics
from spark_jobs.streams.progress import ProgressFiles, listening
from spark_jobs.streams.self_watch import watching_itself
from spark_jobs.streams.silence import Moment
from spark_jobs.streams.start import start
from spark_jobs.streams.stop_requests import StopRequests
from spark_jobs.streams.stop_signals import StopRequest
from spark_jobs.streams.topic_ids import agree_on_topics

_TICK_S = 0.5
_log = logging.getLogger(__name__)


class ServiceOutcome(Enum):
    """How a job ended."""

    DONE = auto()
    """It processed all available input (``job.trigger = available_now``)."""
    STOPPED = auto()
    """Its running batches finished, then its queries stopped."""


def run_job(
    lake: OpenLake,
    job: str,
    stop: StopRequest,
    *,
    requests: StopRequests | None = None,
    source: str | Path | None = None,
    contract: Contract | None = None,
) -> ServiceOutcome:
    """Runs the queries of ``job`` until ``stop``; each starts once the table that it reads exists.

    Ends the process (see :mod:`spark_jobs.streams.hard_exit`) if the lock of the job is lost, or if batches do not
    finish within ``job.stop_timeout`` once the job is to stop or a query has failed.

    Args:
        lake: the lake.
        job: its name.
        stop: polled several times a second.
        requests: to stop, made in the lake; None: those from now on.
        source: for the job that reads records: the folder to watch; None: folders or Kafka, as configured.
        contract: of the settings, which the job that reads records stores; None: it does not.

    Raises:
        SourceError: no input is configured, Kafka does not answer, a topic was created again since it was read, or an
            initial state cannot be used.
        LakeInUseError: another process runs the job on this lake.
        SettingsError: job.metrics cannot be listened on.
        CheckpointError: its checkpoints belong to other settings and cannot be used with these.
        QueryFailedError: a query ended with an error.
    """
    requests = requests or StopRequests(lake, job)
    queries, silver = queries_of(job), threading.Lock()
    arrival = None if all(query.reads for query in queries) else _arrival(lake, source)
    progress = ProgressFiles(lake, delays={query.name: query.watermark(lake.settings) for query in queries})
    beats = SILVER_EVENTS in [query.writes for query in queries]
    heartbeats = Heartbeats(lake, silver) if beats else None

    def begin(query: Query) -> StreamingQuery:
        taken, trigger = None if query.reads else records, start_of(lake.settings.job, query)
        # Heartbeats go to silver, too, and it has one writer at a time.
        within: BatchContext = (lambda _: silver) if query.writes == SILVER_EVENTS else nullcontext
        return start(query, lake, records=taken, trigger=trigger, within=within if query.reads else backlog.batch)

    def on_tick(running: Mapping[Query, StreamingQuery]) -> None:
        backlog.catch_up()
        is_complete = len(running) == len(queries) and not backlog.is_held
        if heartbeats and is_complete and lake.settings.job.trigger is not Trigger.AVAILABLE_NOW:
            _beat(heartbeats, progress, running, lake.settings)

    with lake.hold(job) as check_lock, guarding_lock(job, check_lock), _reporting(lake, progress), ExitStack() as held:
        _claim(lake, job, FILES if folders_of(lake.settings, source) else KAFKA)
        records = arrival() if arrival else None
        if contract and records is not None:
            record(lake, contract)
        copy_initial(lake, queries)
        backlog = held.enter_context(nullcontext(NoBacklog()) if records is None else backlog_of(lake, source))
        running = _Running(queries, lake, begin, waits_for_end=lake.settings.job.trigger is Trigger.AVAILABLE_NOW)
        stall_after, timeout_s = lake.settings.job.stall_after, lake.settings.job.stop_timeout.total_seconds()
        held.enter_context(watching_itself(lake, job, lake.spark.sparkContext, running.queries, progress, stall_after))
        held.enter_context(finishing_batches(job, lambda: list(running.queries.values()), stop, timeout_s))
        return _run(running, lake.settings, stop, requests, on_tick)


def _beat(
    heartbeats: Heartbeats, progress: ProgressFiles, running: Mapping[Query, StreamingQuery], settings: Settings
) -> None:
    """Writes a heartbeat if one is due."""
    now = Moment.now()  # before the states of the queries are read
    views = [view_of(query, own, progress.report(query.name), settings.job) for query, own in running.items()]
    if beat := heartbeats.tick(now, views):
        _log.info("no event moves time: heartbeat at %s", beat.isoformat(timespec="milliseconds"))


@contextmanager
def _reporting(lake: OpenLake, progress: ProgressFiles) -> Iterator[None]:
    """Writes the progress of the queries to files and serves it as metrics."""
    with listening(lake.spark, progress), serve_metrics(lake.settings.job.metrics, QueryMetrics(progress.reports)):
        yield


def _claim(lake: OpenLake, job: str, source: str) -> None:
    for change in claim(lake, lake.settings, QUERIES_OF_JOB[job], source=source):
        _log.warning(
            "%s: %s was %s when the checkpoint was created and is %s now: %s, %s",
            *(change.query, change.setting, change.before, change.now, change.verdict, change.why),
        )


def _arrival(lake: OpenLake, source: str | Path | None) -> Callable[[], DataFrame]:
    """Checks that there is a source. The result opens its stream, once the checkpoint is claimed."""
    if folders_of(lake.settings, source):
        files = arriving_files(lake.spark, lake.settings, source)
        return lambda: files
    topics = check_topics(lake.spark, lake.settings.kafka_of_sources)

    def open_topics() -> DataFrame:
        begins_at = agree_on_topics(lake, lake.settings, topics)
        return arriving_in_kafka(lake.spark, lake.settings, schemas_of(lake.settings, lake), topics, begins_at)

    return open_topics


class _Running:
    """The queries of a job; each starts as soon as it can."""

    def __init__(
        self, queries: Sequence[Query], lake: Lake, begin: Callable[[Query], StreamingQuery], *, waits_for_end: bool
    ) -> None:
        """``waits_for_end``: a query waits until the query that writes its input has ended, if this job runs both."""
        self.queries: dict[Query, StreamingQuery] = {}
        self._all, self._lake, self._begin, self._waits_for_end = queries, lake, begin, waits_for_end

    def start_ready(self) -> None:
        """Starts the queries that can start now and have not started yet."""
        for query in self._all:
            if query not in self.queries and self._is_ready(query):
                self.queries[query] = self._begin(query)
                _log.info("%s: started", query.name)

    def check(self) -> None:
        """Raises the error of a query that has failed."""
        for query in self.queries.values():
            if failure := query.exception():
                raise failure

    @property
    def has_ended(self) -> bool:
        """Whether every query that can start has started and ended."""
        if any(query.isActive for query in self.queries.values()):
            return False
        return not any(query not in self.queries and self._is_ready(query) for query in self._all)

    def _is_ready(self, query: Query) -> bool:
        table = query.table_read
        if table is None:
            return True
        writer = writer_of(table)
        if self._waits_for_end and writer in self._all:
            return writer in self.queries and not self.queries[writer].isActive and is_ready(query, self._lake)
        return is_ready(query, self._lake)


def _run(
    running: _Running,
    settings: Settings,
    stop: StopRequest,
    requests: StopRequests,
    on_tick: Callable[[Mapping[Query, StreamingQuery]], None],
) -> ServiceOutcome:
    with naming_the_cause(lambda: list(running.queries.values())):
        while not stop.is_made:
            running.start_ready()
            running.check()
            on_tick(running.queries)
            if settings.job.trigger is Trigger.AVAILABLE_NOW and running.has_ended:
                return ServiceOutcome.DONE
            requests.heed(stop)
            stop.wait(_TICK_S)
    return ServiceOutcome.STOPPED
