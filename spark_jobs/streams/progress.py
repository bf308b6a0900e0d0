"""Publishes the progress of each query after each batch, for outside observers: ``_progress/<job>/<query>.json``."""

import json
import logging
import os
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from math import isfinite, nan
from typing import Any

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JJavaError
from pyspark.sql import Row, SparkSession
from pyspark.sql.streaming.listener import (
    JStreamingQueryListener,
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    SourceProgress,
    StreamingQueryListener,
    StreamingQueryProgress,
)

from spark_jobs import __version__
from spark_jobs.contract.events import OBSERVED, QUARANTINED
from spark_jobs.errors import AdloomError, LakeError
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.notes import version_opened
from spark_jobs.lake.records import find_record, write_record
from spark_jobs.queries.places import progress_key, trend_key
from spark_jobs.queries.registry import JOB_OF_QUERY, find_query
from spark_jobs.spark.failures import reason
from spark_jobs.streams.reports import QueryReport, QueryState, Trend

_DELIVERY_TIMEOUT_MS = 10_000
_BETWEEN_BATCHES: dict[str, Any] = {"busy_since": None, "tasks_done": 0, "tasks": 0}
_log = logging.getLogger(__name__)


class QuickListener(StreamingQueryListener):
    """A listener that reads a batch's progress from Java as one JSON text.

    PySpark's own listener calls Java for each of some three hundred figures of a join, which costs 0.2 CPU seconds per
    batch.
    """

    @property
    def _jlistener(self) -> JavaObject:
        # PySpark reads this attribute to register the Java listener, and again to remove it.
        if not hasattr(self, "_jlistenerobj"):
            java: Any = SparkSession.active()._jvm  # noqa: SLF001 a session exists here
            self._jlistenerobj = java.PythonStreamingQueryListenerWrapper(_JsonListener(self))
        return self._jlistenerobj


class ProgressFiles(QuickListener):
    """Writes a :class:`QueryReport` and a :class:`Trend` for each query, and logs a line per batch."""

    def __init__(
        self, lake: Lake, *, uncounted: Collection[str] = (), delays: Mapping[str, timedelta | None] | None = None
    ) -> None:
        """Prepares to write the reports of ``lake``.

        Args:
            lake: where the files go.
            uncounted: queries that run with :data:`spark_jobs.spark.names.UNCOUNTED_STATE_CONF`.
            delays: by query, how far its watermark lies behind the newest event time.
        """
        self._lake, self._uncounted, self._delays = lake, uncounted, delays or {}
        self._by_run: dict[str, QueryReport] = {}
        self._lock = threading.Lock()
        self._backlogs: dict[str, tuple[datetime, int]] = {}
        """By query, when its backlog was largest, and what it was then."""
        self._trends: dict[str, Trend] = {}

    def reports(self) -> list[QueryReport]:
        """The reports of all queries started in this process, running or ended."""
        return list(self._by_run.values())

    def report(self, query: str) -> QueryReport | None:
        """The report of the latest start of ``query`` in this process; None if it was not started."""
        return next((report for report in reversed(self.reports()) if report.query == query), None)

    def batch(self, query: str) -> int | None:
        """The number of the latest batch that ``query`` has completed in this process."""
        report = self.report(query)
        return report.batch_id if report else None

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        """Starts a new report."""
        if event.name in JOB_OF_QUERY:
            now, state_rows = datetime.now(UTC), None if event.name in self._uncounted else 0
            delay = self._delays.get(event.name)
            report = QueryReport(
                job=JOB_OF_QUERY[event.name],
                query=event.name,
                version=__version__,
                process_id=os.getpid(),
                started_at=now,
                updated_at=now,
                reads=len(find_query(event.name).reads) or 1,
                watermark_delay_s=None if delay is None else delay.total_seconds(),
                state_rows=state_rows,
                peak_state_rows=state_rows,
            )
            self._write(str(event.runId), report)

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Reports the finished batch."""
        now = datetime.now(UTC)
        batch, now = event.progress, datetime.now(UTC)
        end = batch.sources[0].endOffset
        report = self._update(
            str(batch.runId), lambda before: self._with_backlog(after_batch(before, batch, now), end, now)
        )
        if report:
            _log.info(
                "%s: batch %d: %d rows in %.1f s, watermark %s, %s rows in state",
                report.query,
                report.batch_id,
                report.input_rows,
                report.batch_ms / 1000,
                report.watermark or "not yet",
                "uncounted" if report.state_rows is None else report.state_rows,
            )

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Reports that the query is alive."""
        self._update(str(event.runId), lambda before: idle(before, datetime.now(UTC)))

    def report_tasks(self, query: str, after: int | None, busy_since: datetime, tasks_done: int, tasks: int) -> None:
        """Reports that a task of a long batch has ended: ``tasks_done`` of ``tasks``.

        Does nothing if ``after``, the batch before it, is no longer the latest: the long one has ended meanwhile.
        """
        own = {"busy_since": busy_since, "tasks_done": tasks_done, "tasks": tasks}

        def with_tasks(before: QueryReport) -> QueryReport | None:
            runs = before.query == query and before.state is QueryState.RUNNING and before.batch_id == after
            return _at(before.model_copy(update=own), datetime.now(UTC)) if runs else None

        for run_id in list(self._by_run):
            self._update(run_id, with_tasks)

    def report_failure(self, query: str, why: str) -> None:
        """Reports that ``query`` is about to end because of ``why``, which Spark knows nothing of."""

        def with_failure(before: QueryReport) -> QueryReport | None:
            end = {"state": QueryState.FAILED, "last_error": why, "updated_at": datetime.now(UTC)}
            runs = before.query == query and before.state is QueryState.RUNNING
            return before.model_copy(update=end) if runs else None

        for run_id in list(self._by_run):
            self._update(run_id, with_failure)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """Reports how the query ended."""
        state = QueryState.FAILED if event.exception else QueryState.STOPPED
        error = reason(event.exception) if event.exception else None
        end = {"state": state, "last_error": error, "updated_at": datetime.now(UTC)}
        self._update(str(event.runId), lambda before: before.model_copy(update=end))

    def _with_backlog(self, report: QueryReport, end: str, now: datetime) -> QueryReport:
        """``report`` with the commits that wait after ``end``, and when the backlog will be gone."""
        table = find_query(report.query).table_read
        if table and end:
            with suppress(LakeError, OSError):  # a store that does not answer is no reason to say nothing
                newest = self._lake.newest_commit(table.path) or 0
                report = report.model_copy(update={"backlog_commits": max(0, newest - version_opened(json.loads(end)))})
        left = report.backlog
        if not left:
            self._backlogs.pop(report.query, None)
            return report.model_copy(update={"caught_up_at": None})
        since, most = self._backlogs.get(report.query, (now, left))
        if left >= most:
            since, most = now, left
        self._backlogs[report.query] = since, most
        gone = now + left * ((now - since) / (most - left)) if left < most else None
        return report.model_copy(update={"caught_up_at": gone})

    def _update(self, run_id: str, change: Callable[[QueryReport], QueryReport | None]) -> QueryReport | None:
        """Writes the report of a run after ``change``; None, and nothing is written, if that gives no report."""
        with self._lock:  # Spark's listener and the driver's own watch report at the same time
            before = self._by_run.get(run_id)
            report = change(before) if before else None
            if report:
                self._write(run_id, report)
            return report

    def _write(self, run_id: str, report: QueryReport) -> None:
        self._by_run[run_id] = report
        try:
            write_record(self._lake, progress_key(report.query), report)
            self._add_to_trend(report)
        except (AdloomError, OSError) as error:
            # Outside observers see from its age that the report is stale; the query continues.
            _log.warning("%s: its progress could not be written: %s", report.query, error)

    def _add_to_trend(self, report: QueryReport) -> None:
        """Adds to the trend, which continues the one written by earlier processes."""
        query = report.query
        if query not in self._trends:
            self._trends[query] = find_record(self._lake, trend_key(query), Trend) or Trend()
        if report.batch_id is not None and self._trends[query].is_due(report.updated_at):
            self._trends[query] = self._trends[query].after(report)
            write_record(self._lake, trend_key(query), self._trends[query], indent=None)


class _JsonListener(JStreamingQueryListener):
    """The part of :class:`QuickListener` that Java calls."""

    def onQueryProgress(self, jevent: JavaObject) -> None:  # noqa: N802 named by Spark
        self.pylistener.onQueryProgress(QueryProgressEvent(parse_progress(jevent.progress().json())))


def parse_progress(text: str) -> StreamingQueryProgress:
    """Spark's progress of a batch, from JSON. Spark omits rates that are NaN, as in a first batch."""
    progress, rates = json.loads(text), dict.fromkeys(("inputRowsPerSecond", "processedRowsPerSecond"), nan)
    sources = [rates | {"latestOffset": None} | source for source in progress["sources"]]
    return StreamingQueryProgress.fromJson(rates | progress | {"sources": sources})


@contextmanager
def listening(spark: SparkSession, *listeners: StreamingQueryListener) -> Iterator[None]:
    """Registers ``listeners`` for all streaming queries of ``spark``, and removes them after their last event."""
    with ExitStack() as removing:
        for listener in listeners:
            spark.streams.addListener(listener)
            removing.callback(spark.streams.removeListener, listener)
        removing.callback(_wait_until_delivered, spark)
        yield


def _wait_until_delivered(spark: SparkSession) -> None:
    """Waits until the listeners have received every event; Spark delivers events from its own thread."""
    spark_context = spark.sparkContext._jsc.sc()  # noqa: SLF001 the bus has no public API
    with suppress(Py4JJavaError):  # a timeout is no error
        spark_context.listenerBus().waitUntilEmpty(_DELIVERY_TIMEOUT_MS)


def after_batch(before: QueryReport, batch: StreamingQueryProgress, now: datetime) -> QueryReport:
    """``before``, updated with ``batch``, which ended at ``now``."""
    times = batch.eventTime
    newest = max((time for time in (before.newest_event_time, _time(times, "max")) if time), default=None)
    operators, since = batch.stateOperators, before.batch_ended_at or before.started_at
    behind = [_records_behind(source) for source in batch.sources]
    # Spark reports no rows where it does not count them.
    state_rows = None if before.state_rows is None else sum(operator.numRowsTotal for operator in operators)
    report = before.model_copy(
        update={
            "batch_id": batch.batchId,
            "input_rows": batch.numInputRows,
            "input_rows_per_s": batch.numInputRows / max((now - since).total_seconds(), 0.001),
            "batch_ended_at": now,
            "processed_rows_per_s": _rate(batch.processedRowsPerSecond),
            "total_input_rows": before.total_input_rows + batch.numInputRows,
            "batch_ms": batch.batchDuration,
            "phases_ms": dict(batch.durationMs),
            "newest_event_time": newest,
            "watermark": _time(times, "watermark"),
            "state_rows": state_rows,
            "peak_state_rows": None if state_rows is None else max(before.peak_state_rows or 0, state_rows),
            "state_bytes": sum(operator.memoryUsedBytes for operator in operators),
            "late_rows": before.late_rows + sum(operator.numRowsDroppedByWatermark for operator in operators),
            "quarantined_rows": _sum(before.quarantined_rows, _quarantined(batch.observedMetrics)),
            "backlog_records": sum(records for records in behind if records is not None) if any(behind) else behind[0],
            "backlog_bytes": _bytes_behind(batch.sources[0].metrics),
            **_BETWEEN_BATCHES,
        }
    )
    return _at(report, now)


def idle(before: QueryReport, now: datetime) -> QueryReport:
    """``before``, once the query has polled at ``now`` and found nothing to do."""
    nothing = {"input_rows": 0, "input_rows_per_s": 0.0, "processed_rows_per_s": 0.0, "caught_up_at": None}
    own = nothing | ({} if before.backlog_commits is None else {"backlog_commits": 0}) | _BETWEEN_BATCHES
    return _at(before.model_copy(update=own), now)


def _at(report: QueryReport, now: datetime) -> QueryReport:
    lag = (now - report.watermark).total_seconds() if report.watermark else None
    return report.model_copy(update={"updated_at": now, "watermark_lag_s": lag})


def _quarantined(observed: Mapping[str, Row]) -> int | None:
    counts = observed.get(OBSERVED)
    return None if counts is None else int(counts[QUARANTINED])


def _sum(before: int | None, now: int | None) -> int | None:
    """The sum of the known numbers; None if none is known."""
    return before if now is None else (before or 0) + now


def _rate(rate: float | None) -> float:
    """``rate`` as reported by Spark; 0 if Spark has none or divided by zero."""
    return rate if rate is not None and isfinite(rate) else 0.0


def _time(times: Mapping[str, str], name: str) -> datetime | None:
    """A time from Spark's progress; None before there is one, which Spark reports as 1970."""
    time = datetime.fromisoformat(times[name]) if name in times else None
    return time if time and time.timestamp() > 0 else None


def _records_behind(source: SourceProgress) -> int | None:
    """The backlog of a Kafka source in records; None for other sources."""
    if not source.description.startswith("KafkaV2"):
        return None
    latest, end = _offsets(source.latestOffset), _offsets(source.endOffset)
    return sum(max(0, offset - end.get(partition, offset)) for partition, offset in latest.items())


def _offsets(text: str) -> dict[tuple[str, str], int]:
    by_topic: dict[str, dict[str, int]] = json.loads(text) or {}
    return {(topic, partition): offset for topic, parts in by_topic.items() for partition, offset in parts.items()}


def _bytes_behind(metrics: Mapping[str, Any]) -> int | None:
    outstanding = metrics.get("numBytesOutstanding")
    return int(float(outstanding)) if outstanding is not None else None
