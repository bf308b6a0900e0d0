"""What the streaming queries are doing, counted as their batches end."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

_TELLING_MS = 10_000


@dataclass(frozen=True)
class QueryProgress:
    """What a query did since it was last started.

    ``input_rows`` counts rows read, heartbeats included, a row once for each side of a join. ``state_rows`` are the
    rows in its state stores after its latest batch, ``peak_state_rows`` the most there were after any.
    """

    input_rows: int = 0
    state_rows: int = 0
    peak_state_rows: int = 0


class ProgressListener(StreamingQueryListener):
    """Keeps a :class:`QueryProgress` for each query, by its name."""

    def __init__(self) -> None:
        self._by_query: dict[str, QueryProgress] = {}
        self._lock = threading.Lock()

    def progress(self, query: str) -> QueryProgress:
        """What ``query`` did so far; zeros if it has not ended a batch."""
        with self._lock:
            return self._by_query.get(query, QueryProgress())

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        """Nothing to count yet."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Adds the batch that ended."""
        batch = event.progress
        name = batch.name or ""
        state_rows = sum(operator.numRowsTotal for operator in batch.stateOperators)
        with self._lock:
            so_far = self._by_query.get(name, QueryProgress())
            self._by_query[name] = QueryProgress(
                input_rows=so_far.input_rows + sum(source.numInputRows for source in batch.sources),
                state_rows=state_rows,
                peak_state_rows=max(so_far.peak_state_rows, state_rows),
            )

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Nothing to count."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """What was counted stays."""


@contextmanager
def listening(spark: SparkSession, *listeners: StreamingQueryListener) -> Iterator[None]:
    """Has ``listeners`` hear of all streaming queries of ``spark``."""
    with ExitStack() as removing:
        for listener in listeners:
            spark.streams.addListener(listener)
            removing.callback(spark.streams.removeListener, listener)
        removing.callback(_wait_until_told, spark)
        yield


def _wait_until_told(spark: SparkSession) -> None:
    """Returns when the listeners have heard of all that has happened: Spark tells them from a thread of its own."""
    spark_context = spark.sparkContext._jsc.sc()  # noqa: SLF001 the bus has no public door
    with suppress(Py4JJavaError):  # within the time, or not at all
        spark_context.listenerBus().waitUntilEmpty(_TELLING_MS)
