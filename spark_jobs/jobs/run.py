"""A bounded run: the jobs in one process, over all files of a folder, to the end."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from spark_jobs.contracts.choices import Clock
from spark_jobs.contracts.errors import QueryFailedError
from spark_jobs.contracts.events import HEARTBEAT
from spark_jobs.contracts.jobs import (
    ATTRIBUTE,
    DEDUPLICATE,
    INGEST,
    JOB_OF_QUERY,
    MOVING_AVERAGE,
    QUERIES_OF_JOB,
    SESSIONIZE,
    USER_STATUS_QUERY,
    jobs_of_run,
)
from spark_jobs.contracts.lake import Lake
from spark_jobs.contracts.ledger import Ledger
from spark_jobs.contracts.manifest import FILES
from spark_jobs.contracts.settings import Settings
from spark_jobs.contracts.tables import BRONZE_EVENTS, SILVER_EVENTS, TABLES, Table
from spark_jobs.jobs import accounts
from spark_jobs.jobs import deduplicate as deduplicate_job
from spark_jobs.jobs.gold import STARTS
from spark_jobs.runtime import checkpoints
from spark_jobs.runtime.failures import naming_the_cause
from spark_jobs.runtime.lock import Check, hold_job
from spark_jobs.runtime.progress import ProgressFiles, listening
from spark_jobs.runtime.session import UNCOUNTED_STATE, using
from spark_jobs.sinks.delta import create_table
from spark_jobs.sources.delta import newest_event_time, read_table
from spark_jobs.sources.files import read_files

_TICK_S = 0.2
_IN_LEDGER = (DEDUPLICATE, ATTRIBUTE, SESSIONIZE)
"""Queries whose rows the ledger follows one by one: it tells what a drain left open, no need to count their state."""

OnProgress = Callable[[ProgressFiles], None]


@dataclass(frozen=True)
class RunResult:
    """What a run did: the lake's ledger after it, and the progress of its queries."""

    ledger: Ledger
    progress: ProgressFiles


def run(
    spark: SparkSession,
    settings: Settings,
    lake: Lake,
    source: Path | None,
    *,
    drain: bool = False,
    measure: bool = True,
    count_state: bool = False,
    on_progress: OnProgress = lambda _: None,
) -> RunResult:
    """Takes every file of ``source`` that the lake has not taken yet through to gold, and balances the accounts.

    The queries work in step: a batch is written when all queries that read the table have consumed what was there. So
    a batch of one is a batch of the next, the state is that of a stream however much has piled up, and the same input
    gives the same tables, late rows included, however often the run is killed and started again.

    Args:
        spark: from :func:`spark_jobs.runtime.session.start_session` with the same settings.
        settings: of this run.
        lake: where the tables lie; begun where it does not exist.
        source: the folder of JSON Lines files; None to take nothing more in.
        drain: close everything that is open at the end: impressions, clicks, sessions, windows, users.
        measure: run the job ``measure`` too; what it leaves out it takes up when it runs next.
        count_state: have the progress of the queries tell how many rows their state has; an eighth of the CPU time.
        on_progress: called several times a second from this thread.

    Raises:
        SourceError: ``source`` holds nothing to read.
        LakeInUseError: another process runs one of the jobs on the lake.
        CheckpointError: the lake was begun with other settings, and its checkpoints cannot be used with these.
        QueryFailedError: a query ended with an error.
        LedgerError: the accounts do not balance.
    """
    records = read_files(spark, source, settings.ingest) if source else None
    uncounted = () if count_state else _IN_LEDGER
    progress = ProgressFiles(lake, uncounted=uncounted)
    jobs = jobs_of_run(measure=measure)
    with (
        _holding(jobs, lake, settings, spark) as is_ours,
        listening(spark, progress),
        _stopping_all(spark),
    ):
        # What is only drained may have come from Kafka.
        used = [query for job in jobs for query in QUERIES_OF_JOB[job] if records or query != INGEST]
        checkpoints.claim(lake, settings, used, source=FILES)

        def starting(query: str, start: Callable[..., StreamingQuery]) -> Callable[[], StreamingQuery]:
            conf = UNCOUNTED_STATE if query in uncounted else {}
            return partial(_start, start, spark, settings, lake, conf)

        of_gold = [pair for job in jobs if job in STARTS for pair in zip(QUERIES_OF_JOB[job], STARTS[job], strict=True)]
        gold = _Readers(SILVER_EVENTS, lake, [starting(query, start) for query, start in of_gold])
        start_silver = partial(deduplicate_job.start_deduplicate, within=gold.caught_up)
        silver = _Readers(BRONZE_EVENTS, lake, [starting(DEDUPLICATE, start_silver)])
        taking: list[StreamingQuery] = []
        with naming_the_cause(lambda: [*gold.queries, *silver.queries, *taking]):
            if records:
                taking = [deduplicate_job.start_ingest(records, settings, lake, within=silver.caught_up)]
            while not all(ingest.awaitTermination(_TICK_S) for ingest in taking):  # type: ignore[arg-type]
                is_ours()
                on_progress(progress)
            silver.catch_up()
            silver.stop()
            gold.catch_up()
            for table in TABLES:  # those that no batch has begun
                create_table(spark, lake, table)
            if drain:
                _drain(spark, settings, lake, gold)
            gold.stop()
    on_progress(progress)  # by now it has been told of all batches
    return RunResult(accounts.balance(spark, settings, lake, drained=drain), progress)


@contextmanager
def _holding(jobs: Iterable[str], lake: Lake, settings: Settings, spark: SparkSession) -> Iterator[Check]:
    """Holds the locks of ``jobs``; gives what checks that they are still held."""
    with ExitStack() as held:
        checks = [held.enter_context(hold_job(lake, job, settings.s3, spark=spark)) for job in jobs]

        def check() -> None:
            for one in checks:
                one()

        yield check


def _start(
    start: Callable[..., StreamingQuery], spark: SparkSession, settings: Settings, lake: Lake, conf: Mapping[str, str]
) -> StreamingQuery:
    """Starts a query that goes by ``conf``."""
    with using(spark, conf):
        return start(spark, settings, lake)


class _Readers:
    """The queries that read one table: started when it has its first rows, for an empty batch costs seconds."""

    def __init__(self, table: Table, lake: Lake, starts: list[Callable[[], StreamingQuery]]) -> None:
        self._table, self._lake, self._starts = table, lake, starts
        self.queries: list[StreamingQuery] = []

    def catch_up(self) -> None:
        """Returns when every query has consumed what the table holds now."""
        if not self.queries and self._lake.has(self._table):
            self.queries = [start() for start in self._starts]
        for query in self.queries:
            query.processAllAvailable()

    @contextmanager
    def caught_up(self) -> Iterator[None]:
        """A context that is entered once every query has caught up."""
        self.catch_up()
        yield

    def stop(self) -> None:
        """Stops the queries."""
        for query in self.queries:
            query.stop()


def _drain(spark: SparkSession, settings: Settings, lake: Lake, gold: _Readers) -> None:
    """Moves time past everything that is open.

    A batch closes what lies behind the watermark that the batch before it left. So it takes two heartbeats: the first
    moves the watermark, the second makes a batch that runs under it. Each is consumed before the next is written, and
    is written only if it is not there yet, so a run that is killed in between goes on where it stopped.
    """
    events = read_table(spark, lake, SILVER_EVENTS).where(F.col("event_type") != HEARTBEAT)
    last = newest_event_time(events)
    if last is None:
        return
    beat_time = last + drain_lead(settings)
    for beat in (1, 2):
        event_id = f"drain-{beat_time.isoformat()}-{beat}"
        deduplicate_job.append_heartbeat(spark, lake, beat_time, event_id, writer=f"heartbeat {event_id}", number=0)
        gold.catch_up()
    clocks = {MOVING_AVERAGE: settings.moving_average.clock, USER_STATUS_QUERY: settings.user_status.clock}
    for query in gold.queries:
        if clocks.get(query.name or "") is not Clock.PROCESSING:
            _check_closed(query)


def _check_closed(query: StreamingQuery) -> None:
    """Raises a QueryFailedError where a drain left state in ``query``, if it counts it."""
    batch = query.lastProgress
    left = sum(operator.numRowsTotal for operator in batch.stateOperators) if batch else 0
    if left:
        raise QueryFailedError(
            f"query {query.name} still holds {left} rows of state after the drain: its watermark did not follow the "
            "heartbeats, so rows of gold are missing; keep the lake for inspection and report it"
        )


def drain_lead(settings: Settings) -> timedelta:
    """How far past the last event the heartbeat of a drain lies: just far enough to close everything."""
    attribute, sessionize = settings.attribute, settings.sessionize
    stats, average, status = settings.campaign_stats, settings.moving_average, settings.user_status
    leads = (
        max(attribute.impression_watermark, attribute.click_watermark) + attribute.window,
        sessionize.watermark + sessionize.gap,
        stats.watermark + stats.window + attribute.window,
        average.watermark + average.timeout,
        status.watermark + status.idle_after,
    )
    return max(leads) + timedelta(milliseconds=2)


@contextmanager
def _stopping_all(spark: SparkSession) -> Iterator[None]:
    try:
        yield
    finally:
        for query in spark.streams.active:
            if query.name in JOB_OF_QUERY:
                query.stop()
