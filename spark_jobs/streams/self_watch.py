"""A driver that watches itself: it says that it is alive, and ends if its batches no longer make progress.

::

    each 5 s    Spark      which batches run, and how many of their tasks have ended
    each 5 s    no task of a running batch has ended for job.stall_after, or Spark has not answered for as long:
                           the driver ends, with the reason
    each 15 s   the lake   driver.json; and the report of a query whose batch takes longer than that

How long a batch takes does not matter: one that catches up on a day may well take hours. The process ends at once,
without Spark, which may be what hangs; the next start repeats the running batches.
"""

import logging
import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql.streaming.query import StreamingQuery

from spark_jobs import __version__
from spark_jobs.config.durations import format_duration
from spark_jobs.errors import AdloomError
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.records import write_record
from spark_jobs.queries.query import Query
from spark_jobs.streams.hard_exit import FAILED, End, end_at_once
from spark_jobs.streams.progress import ProgressFiles
from spark_jobs.streams.reports import DriverReport, driver_report_key

_LOOK_S = 5.0
_REPORT_S = 15.0
_ASLEEP_S = 60.0
"""After a longer gap between two looks, the process itself or its machine was stopped."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Sight:
    """A query as a look at Spark finds it.

    Attributes:
        batch: the number of the latest batch that it has completed since it was started; None before the first.
        is_busy: whether a batch is running.
        spark_jobs: the number of the latest Spark job of its batches; -1 before the first.
        tasks_done: the tasks of its running Spark jobs that have ended.
        tasks: the tasks of these Spark jobs.
    """

    batch: int | None
    is_busy: bool
    spark_jobs: int = -1
    tasks_done: int = 0
    tasks: int = 0


@dataclass
class Signs:
    """The signs of progress of a job: since when each running batch has made none. Times are seconds.

    Attributes:
        stall_s: how long a batch may go without any.
        looked_at: when Spark last answered.
    """

    stall_s: float
    looked_at: float
    _seen: dict[str, Sight] = field(default_factory=dict)
    _progress_at: dict[str, float] = field(default_factory=dict)

    def see(self, now: float, found: Mapping[str, Sight]) -> None:
        """Takes note of what a look at ``now`` has ``found``, by query."""
        for query, sight in found.items():
            if not sight.is_busy or sight != self._seen.get(query):
                self._progress_at[query] = now
        self._seen, self.looked_at = dict(found), now

    def skip(self, seconds: float) -> None:
        """Leaves out ``seconds`` in which this process did not run."""
        self.looked_at += seconds
        self._progress_at = {query: at + seconds for query, at in self._progress_at.items()}

    def stalled(self, now: float) -> tuple[str, str] | None:
        """The query that makes no progress, and why it is thought so; the query is empty if Spark does not answer."""
        limit = f"for {format_duration(timedelta(seconds=self.stall_s))} (job.stall_after)"
        for query, sight in self._seen.items():
            if sight.is_busy and now - self._progress_at[query] > self.stall_s:
                done = f"{sight.tasks_done} of {sight.tasks} tasks of its Spark jobs have ended"
                return query, f"no task of its running batch has ended {limit}: {done}"
        if now - self.looked_at > self.stall_s:
            return "", f"Spark has not answered {limit}"
        return None

    @property
    def quiet_s(self) -> float:
        """For how long, up to the latest look, the batch that is worst off has made no progress."""
        busy = [self.looked_at - self._progress_at[query] for query, sight in self._seen.items() if sight.is_busy]
        return max(busy, default=0.0)


@contextmanager
def watching_itself(
    lake: Lake,
    job: str,
    spark: SparkContext,
    queries: Mapping[Query, StreamingQuery],
    progress: ProgressFiles,
    stall_after: timedelta,
    end: End = end_at_once,
) -> Iterator[None]:
    """Watches ``queries`` while its block runs.

    Args:
        lake: where the reports go.
        job: the job of this driver.
        spark: the context that the batches run in.
        queries: those that run; more may be added meanwhile.
        progress: the reports of the queries.
        stall_after: how long a batch may make no progress.
        end: ends the process.
    """
    watch = _SelfWatch(lake, job, spark, queries, progress, Signs(stall_after.total_seconds(), time.monotonic()), end)
    watch.report()
    threads = [threading.Thread(target=step, daemon=True) for step in (watch.look, watch.guard)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        watch.ended.set()


class _SelfWatch:
    def __init__(
        self,
        lake: Lake,
        job: str,
        spark: SparkContext,
        queries: Mapping[Query, StreamingQuery],
        progress: ProgressFiles,
        signs: Signs,
        end: End,
    ) -> None:
        self._lake, self._job, self._spark, self._queries, self._progress = lake, job, spark, queries, progress
        self._signs, self._end = signs, end
        self._started_at = datetime.now(UTC)
        self._busy_since: dict[str, datetime] = {}
        self._found: dict[str, Sight] = {}
        self._reported: dict[str, Sight] = {}
        self.ended = threading.Event()

    def look(self) -> None:
        """Looks at Spark again and again. It may never return from a look: that is for :meth:`guard` to see."""
        while not self.ended.wait(_LOOK_S):
            try:
                found = {
                    query.name: sight_of(self._spark, running, self._progress.batch(query.name))
                    for query, running in list(self._queries.items())
                }
            except (Py4JError, OSError, AttributeError) as error:
                _log.debug("%s: cannot look at Spark: %s", self._job, error)
                continue
            self._found = found
            self._signs.see(time.monotonic(), found)

    def guard(self) -> None:
        """Ends the process if it makes no progress, and says every few seconds that it is alive."""
        before = reported_at = time.monotonic()
        while not self.ended.wait(_LOOK_S):
            now = time.monotonic()
            if now - before > _ASLEEP_S:
                self._signs.skip(now - before)
            before = now
            if stalled := self._signs.stalled(now):
                self._give_up(*stalled)
            if now - reported_at >= _REPORT_S:
                reported_at = now
                self.report()

    def report(self) -> None:
        """Writes the report of the driver, and those of queries whose batches take long."""
        now, found = datetime.now(UTC), self._found
        own = DriverReport(
            process_id=os.getpid(),
            version=__version__,
            started_at=self._started_at,
            updated_at=now,
            progress_at=now - timedelta(seconds=self._signs.quiet_s),
            has_completed=any(sight.batch is not None for sight in found.values()),
            is_idle=not any(sight.is_busy for sight in found.values()),
        )
        try:
            write_record(self._lake, driver_report_key(self._job), own)
        except (AdloomError, OSError) as error:
            _log.warning("%s: cannot say in the lake that it is alive: %s", self._job, error)
        for query, sight in found.items():
            if not sight.is_busy or sight.batch != self._reported.get(query, sight).batch:
                self._busy_since.pop(query, None)
            elif query in self._busy_since and sight != self._reported.get(query):
                self._progress.report_tasks(query, sight.batch, self._busy_since[query], sight.tasks_done, sight.tasks)
            if sight.is_busy:
                self._busy_since.setdefault(query, now)
        self._reported = found

    def _give_up(self, query: str, why: str) -> None:
        reporting = threading.Thread(target=self._report_failure, args=(query, why), daemon=True)
        reporting.start()
        reporting.join(_REPORT_S)
        self._end(FAILED, f"{query or self._job}: {why}; the next start repeats the running batches")

    def _report_failure(self, query: str, why: str) -> None:
        for name in [query] if query else list(self._found):
            self._progress.report_failure(name, why)


def sight_of(spark: SparkContext, running: StreamingQuery, batch: int | None) -> Sight:
    """Looks at a query, whose latest completed batch is ``batch``.

    Raises:
        Py4JError: Java does not answer, or has ended.
    """
    if not running.isActive or not running.status["isTriggerActive"]:
        return Sight(batch, is_busy=False)
    tracker = spark.statusTracker()
    # The batches of a query run in the job group of its run.
    numbers = set(tracker.getJobIdsForGroup(str(running.runId)))
    active = [info for job in numbers & set(tracker.getActiveJobsIds()) if (info := tracker.getJobInfo(job))]
    stages = [stage for info in active for number in info.stageIds if (stage := tracker.getStageInfo(number))]
    done, tasks = sum(stage.numCompletedTasks for stage in stages), sum(stage.numTasks for stage in stages)
    return Sight(batch, True, max(numbers, default=-1), done, tasks)
