"""Reports for observers: ``_progress/<job>/<query>.json`` after each batch, and ``driver.json`` of the driver."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from spark_jobs.lake.layout import Lake
from spark_jobs.lake.records import find_record
from spark_jobs.places import PROGRESS
from spark_jobs.queries.places import progress_key

EACH = timedelta(seconds=15)
"""The least distance between the most recent points."""
_FINE = timedelta(hours=1)
_COARSE, _KEPT = timedelta(minutes=5), timedelta(days=1)


class QueryState(StrEnum):
    """The state of a query in its last report."""

    RUNNING = "running"
    STOPPED = "stopped"
    FAILED = "failed"


class QueryReport(BaseModel):
    """The latest batch of a query, and its totals since it was started.

    Times are UTC. A killed query cannot report it: its state stays ``running`` and ``updated_at`` grows old.
    """

    model_config = ConfigDict(frozen=True)

    job: str
    query: str
    version: str
    """Version of this package."""
    process_id: int
    state: QueryState = QueryState.RUNNING
    started_at: datetime
    updated_at: datetime
    """When the latest batch ended, the query last polled and found nothing to do, or a task of a long batch ended."""
    batch_id: int | None = None
    input_rows: int = 0
    """Rows of the latest batch; a join counts a row once per side. The same holds for the rates (rows/s)."""
    input_rows_per_s: float = 0.0
    """Over the time since the latest batch before, or since the start."""
    processed_rows_per_s: float = 0.0
    """Over the time that the batch took."""
    batch_ended_at: datetime | None = None
    reads: int = 1
    """How often the query reads each row; a join reads its input once per side."""
    total_input_rows: int = 0
    """Since the query was started."""
    batch_ms: int = 0
    phases_ms: dict[str, int] = {}
    """Parts of ``batch_ms``, by Spark's name for them."""
    busy_since: datetime | None = None
    """When the running batch began, if it is a long one; None otherwise."""
    tasks_done: int = 0
    """Tasks that the running batch has finished in its current Spark jobs; 0 between batches."""
    tasks: int = 0
    """Tasks of these Spark jobs."""
    newest_event_time: datetime | None = None
    """The largest event time in any batch since the query was started."""
    watermark: datetime | None = None
    watermark_delay_s: float | None = None
    """How far the watermark should lie behind the largest event time ever read; None if unknown."""
    watermark_lag_s: float | None = None
    """From the watermark to ``updated_at``."""
    state_rows: int | None = 0
    """After the latest batch; None if rows are not counted."""
    peak_state_rows: int | None = 0
    """Maximum of ``state_rows`` since the query was started."""
    state_bytes: int = 0
    late_rows: int = 0
    """Rows dropped as late since the query was started."""
    quarantined_rows: int | None = None
    """Records quarantined since the query was started; only ``ingest`` quarantines."""
    backlog_records: int | None = None
    """Kafka records that had arrived but were not in the batch."""
    backlog_bytes: int | None = None
    """Bytes of files or tables that were available but not in the batch."""
    backlog_commits: int | None = None
    """Commits of the table that the query reads that were there but not in the batch."""
    caught_up_at: datetime | None = None
    """When the backlog will be gone if it shrinks on as it has; None: no backlog, or one that does not shrink."""
    last_error: str | None = None

    @property
    def backlog(self) -> int | None:
        """The records or commits that wait to be read; None if unknown."""
        return self.backlog_commits if self.backlog_records is None else self.backlog_records

    @property
    def total_rows(self) -> int:
        """Rows processed since the query was started; one that is read twice counts once."""
        return self.total_input_rows // self.reads


class TrendPoint(BaseModel):
    """A query's metrics at one time (UTC). Rates are in rows per second; ``late_rows`` counts since the start."""

    model_config = ConfigDict(frozen=True)

    at: datetime
    input_rows_per_s: float
    processed_rows_per_s: float
    batch_s: float
    watermark_lag_s: float | None
    state_rows: int | None
    late_rows: int


class Trend(BaseModel):
    """A query's points in time order: :data:`EACH` apart in the last hour, five minutes apart in the last day."""

    model_config = ConfigDict(frozen=True)

    points: tuple[TrendPoint, ...] = ()

    def is_due(self, now: datetime) -> bool:
        """Whether a point at ``now`` would be far enough from the last one."""
        return not self.points or now - self.points[-1].at >= EACH

    def after(self, report: QueryReport) -> "Trend":
        """The trend with a point added from ``report``, and older points thinned out."""
        now = report.updated_at
        point = TrendPoint(
            at=now,
            input_rows_per_s=round(report.input_rows_per_s, 1),
            processed_rows_per_s=round(report.processed_rows_per_s, 1),
            batch_s=report.batch_ms / 1000,
            watermark_lag_s=None if report.watermark_lag_s is None else round(report.watermark_lag_s, 1),
            state_rows=report.state_rows,
            late_rows=report.late_rows,
        )
        kept: list[TrendPoint] = []
        for old in self.points:
            age = now - old.at
            is_far = not kept or old.at - kept[-1].at >= _COARSE
            if age <= _FINE or (age <= _KEPT and is_far):
                kept.append(old)
        return Trend(points=(*kept, point))


class DriverReport(BaseModel):
    """A sign of life of a driver, every few seconds, whatever its batches do. Times are UTC."""

    model_config = ConfigDict(frozen=True)

    process_id: int
    version: str
    """Version of this package."""
    started_at: datetime
    updated_at: datetime
    progress_at: datetime
    """When it last made progress: a batch or a task of one ended, or no batch was running."""
    has_completed: bool = False
    """Whether it has completed a batch since it was started."""
    is_idle: bool = True
    """Whether no batch was running."""


def driver_report_key(job: str) -> str:
    """The latest report of the driver of ``job``, as JSON."""
    return f"{PROGRESS}/{job}/driver.json"


def read_driver_report(lake: Lake, job: str) -> DriverReport | None:
    """The latest report of the driver of ``job``; None if it is missing, damaged or of another version."""
    return find_record(lake, driver_report_key(job), DriverReport)


def read_report(lake: Lake, query: str) -> QueryReport | None:
    """The latest report of ``query``; None if it has not run, or the report is damaged or from another version."""
    return find_record(lake, progress_key(query), QueryReport)


def read_reports(lake: Lake, queries: Iterable[str]) -> Iterator[QueryReport]:
    """The latest reports of ``queries``, in their order, without those that cannot be read."""
    for query in queries:
        if report := read_report(lake, query):
            yield report
