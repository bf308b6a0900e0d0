"""Stops a long-running job: after its current batches on the first SIGTERM, at once on the second."""

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

from pyspark.sql.streaming.query import StreamingQuery

_POLL_S = 0.1
_log = logging.getLogger(__name__)


@dataclass
class StopRequest:
    """Counts the stop signals received so far."""

    signals: int = 0
    _wake: threading.Event = field(default_factory=threading.Event)

    @property
    def is_made(self) -> bool:
        """Whether the job should stop."""
        return self.signals > 0

    @property
    def is_urgent(self) -> bool:
        """Whether the job should stop at once."""
        return self.signals > 1

    def wait(self, seconds: float) -> None:
        """Returns after ``seconds``, or as soon as a signal arrives."""
        self._wake.wait(seconds)

    def ask(self, *_: int | FrameType | None) -> None:
        """Requests a stop, or an immediate one if called again; also the signal handler."""
        self.signals += 1
        self._wake.set()


@contextmanager
def stop_on_signals() -> Iterator[StopRequest]:
    """Counts SIGTERM and SIGINT in the StopRequest it yields. Main thread only.

    Send signals to the Python process alone: sent to its process group they would end Java first, and with it every
    running batch.
    """
    request = StopRequest()
    before = {number: signal.signal(number, request.ask) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def finish_batches(
    queries: Sequence[StreamingQuery], *, timeout_s: float, give_up: Callable[[], bool] = lambda: False
) -> bool:
    """Stops each of ``queries`` after its current batch.

    A batch that starts in the short time between is cancelled and repeated at the next start.

    Args:
        queries: the queries to stop.
        timeout_s: how long the batches may take, in seconds.
        give_up: polled while waiting; True ends the wait.

    Returns:
        Whether all have stopped. If not, the others are still running.
    """
    deadline = time.monotonic() + timeout_s
    left = {query: _last_batch(query) for query in queries if query.isActive}
    while left:
        for query in [query for query, batch in left.items() if _is_between_batches(query, batch)]:
            _log.info("%s: stopped after batch %s", query.name, _last_batch(query))
            query.stop()
            del left[query]
        if left and (give_up() or time.monotonic() > deadline):
            return False
        time.sleep(_POLL_S if left else 0)
    return True


def _is_between_batches(query: StreamingQuery, batch_before: int) -> bool:
    return not query.isActive or not query.status["isTriggerActive"] or _last_batch(query) > batch_before


def _last_batch(query: StreamingQuery) -> int:
    progress = query.lastProgress
    return progress.batchId if progress else -1
