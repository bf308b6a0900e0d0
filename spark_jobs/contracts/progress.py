"""What a streaming query reports after each batch: ``_progress/<job>/<query>.json``."""

from datetime import datetime
from enum import StrEnum

from pydantic import BaseModel, ConfigDict

OBSERVED, QUARANTINED = "adloom", "quarantined"
"""Names of the observation that adds counts to Spark's own figures, and of a count in it."""


class QueryState(StrEnum):
    """State of a query, as it last reported it."""

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
    """When the latest batch ended, or the query last polled and found nothing to do."""
    batch_id: int | None = None
    input_rows: int = 0
    """Rows of the latest batch; a join counts a row once per side. The same holds for the rates (rows/s)."""
    input_rows_per_s: float = 0.0
    processed_rows_per_s: float = 0.0
    reads: int = 1
    """How often the query reads each row; a join reads its input once per side."""
    total_input_rows: int = 0
    """Since the query was started."""
    batch_ms: int = 0
    phases_ms: dict[str, int] = {}
    """Parts of ``batch_ms``, by Spark's name for them."""
    newest_event_time: datetime | None = None
    """The largest event time in any batch since the query was started."""
    watermark: datetime | None = None
    watermark_delay_s: float | None = None
    """How far behind the largest event time ever read the watermark belongs; None if that is not known."""
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
    last_error: str | None = None

    @property
    def total_rows(self) -> int:
        """Rows processed since the query was started; one that is read twice counts once."""
        return self.total_input_rows // self.reads
