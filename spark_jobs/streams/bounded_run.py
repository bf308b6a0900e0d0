"""A bounded run: the jobs in one process, over all files of a folder, to the end."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark_jobs.contract.contract import Contract
from spark_jobs.contract.tables import BRONZE_EVENTS, SILVER_EVENTS
from spark_jobs.ingest.arriving import arriving_files
from spark_jobs.ingest.input_files import folders_of
from spark_jobs.lake.contracts import record
from spark_jobs.lake.lock import Check
from spark_jobs.lake.notes import CommitNote
from spark_jobs.ledger.model import Ledger
from spark_jobs.ledger.update import balance
from spark_jobs.places import REQUEUE
from spark_jobs.queries.initial_state import copy_initial
from spark_jobs.queries.jobs import jobs_of_run
from spark_jobs.queries.manifest import FILES
from spark_jobs.queries.output import ASAP, AVAILABLE_NOW, BatchContext
from spark_jobs.queries.query import Query
from spark_jobs.queries.registry import JOB_OF_QUERY, QUERIES, TABLES
from spark_jobs.spark.failures import naming_the_cause
from spark_jobs.spark.names import UNCOUNTED_STATE_CONF
from spark_jobs.spark.open_lake import OpenLake
from spark_jobs.spark.write_delta import create_table
from spark_jobs.streams import checkpoints
from spark_jobs.streams.backlog import NoBacklog, backlog_of
from spark_jobs.streams.drain import drain_lake
from spark_jobs.streams.lockstep import Flow
from spark_jobs.streams.progress import ProgressFiles, listening
from spark_jobs.streams.start import start

_TICK_S = 0.2
OnProgress = Callable[[ProgressFiles], None]


@dataclass(frozen=True)
class RunResult:
    """The result of a run: the lake's ledger after it, and the progress of its queries."""

    ledger: Ledger
    progress: ProgressFiles
    drained_to: datetime | None = None
    """The event time that a drain moved to; None if there was none, or no event."""


def run(
    lake: OpenLake,
    source: str | Path | None,
    *,
    drain: bool = False,
    measure: bool = True,
    count_state: bool = False,
    contract: Contract | None = None,
    on_progress: OnProgress = lambda _: None,
) -> RunResult:
    """Processes every file of ``source`` that the lake does not have yet, up to gold, and balances the ledger.

    The queries work in lockstep: a batch is written once every query that reads the table has consumed what was there.
    So a batch of one query is a batch of the next, state stays as small as in a live stream however much input has
    piled up, and the same input gives the same tables, late rows included, however often the run is killed and
    restarted.

    Args:
        lake: where the tables are; created where it does not exist.
        source: the folder of files; None: those of the sources in the settings, or else only what the lake has.
        drain: at the end, close everything that is open: impressions, clicks, sessions, windows, users.
        measure: run the job ``measure`` too; if not, it catches up when it next runs.
        count_state: report how many rows the state of each query has, at the price of an eighth of the CPU time.
        contract: that of the settings, to be written down; None: it is not.
        on_progress: called several times a second from this thread.

    Raises:
        SourceError: ``source`` has nothing to read, or an initial state cannot be used.
        LakeInUseError: another process runs one of the jobs on the lake, or requeues records.
        CheckpointError: the checkpoints belong to other settings and cannot be used with these.
        QueryFailedError: a query ended with an error.
        LedgerError: the ledger does not balance.
    """
    records = arriving_files(lake.spark, lake.settings, source) if folders_of(lake.settings, source) else None
    jobs = jobs_of_run(measure=measure)
    # What is only drained may have come from Kafka.
    queries = [query for query in QUERIES if query.job in jobs and (records is not None or query.reads)]
    uncounted = () if count_state else tuple(query.name for query in queries if query.rows_in_ledger)
    progress = ProgressFiles(lake, uncounted=uncounted)

    def begin(query: Query, within: BatchContext) -> StreamingQuery:
        taken = None if query.reads else records

        @contextmanager
        def aligned(note: CommitNote) -> Iterator[None]:
            with within(note), backlog.batch(note):
                yield

        # These end with what there is; the others go on, for whatever the ones before them write.
        trigger = ASAP if query.reads else AVAILABLE_NOW
        conf = UNCOUNTED_STATE_CONF if query.name in uncounted else {}
        return start(query, lake, records=taken, trigger=trigger, within=within if query.reads else aligned, conf=conf)

    flow = Flow(queries, lake, begin)
    with (
        _holding(jobs, lake) as check_locks,
        listening(lake.spark, progress),
        _stopping_all(lake.spark),
        naming_the_cause(lambda: list(flow.running.values())),
    ):
        checkpoints.claim(lake, lake.settings, [query.name for query in queries], source=FILES)
        if contract and records is not None:
            record(lake, contract)
        copy_initial(lake, queries)
        with nullcontext(NoBacklog()) if records is None else backlog_of(lake, source) as backlog:
            for _ in _take_in(flow):
                check_locks()
                on_progress(progress)
        flow.finish(BRONZE_EVENTS)
        flow.stop_writers_of(SILVER_EVENTS)
        for table in TABLES:  # those without a batch so far
            create_table(lake.spark, lake, table)
        drained_to = drain_lake(lake, flow) if drain else None
        flow.stop()
    on_progress(progress)  # by now it has heard of every batch
    return RunResult(balance(lake.settings, lake, drained=drain), progress, drained_to)


def _take_in(flow: Flow) -> Iterator[None]:
    """Takes in all files; yields several times a second while they are read."""
    reading = flow.take_in()
    while not all(query.awaitTermination(_TICK_S) for query in reading):  # type: ignore[arg-type] # its stub says int
        yield


@contextmanager
def _holding(jobs: Iterable[str], lake: OpenLake) -> Iterator[Check]:
    """Holds the locks of ``jobs``, and keeps requeues away; gives what checks that the locks are still held."""
    with ExitStack() as held:
        # What is requeued meanwhile might reach bronze after its last reader, and be missing from the ledger.
        checks = [held.enter_context(lake.hold(job)) for job in (*jobs, REQUEUE)]

        def check() -> None:
            for one in checks:
                one()

        yield check


@contextmanager
def _stopping_all(spark: SparkSession) -> Iterator[None]:
    try:
        yield
    finally:
        for query in spark.streams.active:
            if query.name in JOB_OF_QUERY:
                query.stop()
