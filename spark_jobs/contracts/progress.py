"""What a streaming query tells of itself after each batch: ``_progress/<job>/<query>.json``."""

from datetime import datetime
from enum import StrEnum

from pydantic import BaseModel, ConfigDict

OBSERVED, QUARANTINED = "adloom", "quarantined"
"""What a query counts beside Spark's own numbers: the name of the observation, and of a count in it."""


class QueryState(StrEnum):
    """Where a query stands, as far as it could still say so."""

    RUNNING = "running"
    STOPPED = "stopped"
    FAILED = "failed"


class QueryReport(BaseModel):
    """The latest batch of a query, and what it has come to since it was started.

    Times are UTC. A query that was killed reports nothing of it: its state stays ``running`` and ``updated_at`` old.
    """

    model_config = ConfigDict(frozen=True)

    job: str
    query: str
    version: str
    """Of the package."""
    process_id: int
    state: QueryState = QueryState.RUNNING
    started_at: datetime
    updated_at: datetime
    """When the latest batch ended, or the query was last seen with nothing to do."""
    batch_id: int | None = None
    input_rows: int = 0
    """Of the latest batch; a row once for each side of a join. So are the rates, in rows a second."""
    input_rows_per_s: float = 0.0
    processed_rows_per_s: float = 0.0
    reads: int = 1
    """How often the query reads each row: a join reads its input once for either side."""
    total_input_rows: int = 0
    """Since the query was started."""
    batch_ms: int = 0
    phases_ms: dict[str, int] = {}
    """Parts of ``batch_ms``, by Spark's names."""
    newest_event_time: datetime | None = None
    """The largest event time in any batch since the query was started."""
    watermark: datetime | None = None
    watermark_lag_s: float | None = None
    """From the watermark to ``updated_at``."""
    state_rows: int | None = 0
    """After the latest batch; None where they are not counted."""
    peak_state_rows: int | None = 0
    """The most after any batch since the query was started."""
    state_bytes: int = 0
    late_rows: int = 0
    """Dropped as late since the query was started."""
    quarantined_rows: int | None = None
    """Records of no good verdict since the query was started; only ``ingest`` judges."""
    backlog_records: int | None = None
    """Kafka records that had come in but were not in the batch."""
    backlog_bytes: int | None = None
    """Bytes of files or tables that were there but were not in the batch."""
    last_error: str | None = None

    @property
    def total_rows(self) -> int:
        """Rows that went through since the query was started; one that it reads twice counts once."""
        return self.total_input_rows // self.reads
