"""What the streaming queries are doing, counted as their batches end."""

import threading
from dataclasses import dataclass, field, replace
from datetime import datetime

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)


@dataclass(frozen=True)
class QueryProgress:
    """Sums over the batches of a query since it was last started.

    ``input_rows`` counts rows read, heartbeats included; ``busy_ms`` is the time its batches took; ``state_rows`` and
    ``peak_state_rows`` are the rows in all its state stores; ``watermark`` is that of the latest batch.
    """

    input_rows: int = 0
    batches: int = 0
    busy_ms: int = 0
    state_rows: int = 0
    peak_state_rows: int = 0
    dropped_late: int = 0
    watermark: datetime | None = None


@dataclass
class _Counts:
    by_query: dict[str, QueryProgress] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


class ProgressListener(StreamingQueryListener):
    """Keeps a :class:`QueryProgress` for each query, by its name."""

    def __init__(self) -> None:
        self._counts = _Counts()

    def progress(self, query: str) -> QueryProgress:
        """What ``query`` did so far; zeros if it has not ended a batch."""
        with self._counts.lock:
            return self._counts.by_query.get(query, QueryProgress())

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        """Nothing to count yet."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Adds the batch that ended."""
        batch = event.progress
        name = batch.name or ""
        state_rows = sum(operator.numRowsTotal for operator in batch.stateOperators)
        late = sum(operator.numRowsDroppedByWatermark for operator in batch.stateOperators)
        watermark = batch.eventTime.get("watermark")
        with self._counts.lock:
            so_far = self._counts.by_query.get(name, QueryProgress())
            self._counts.by_query[name] = replace(
                so_far,
                input_rows=so_far.input_rows + max(source.numInputRows for source in batch.sources),
                batches=so_far.batches + 1,
                busy_ms=so_far.busy_ms + batch.batchDuration,
                state_rows=state_rows,
                peak_state_rows=max(so_far.peak_state_rows, state_rows),
                dropped_late=so_far.dropped_late + late,
                watermark=datetime.fromisoformat(watermark) if watermark else so_far.watermark,
            )

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Nothing to count."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """What was counted stays."""
