"""Stop signals, and waiting for batches to end."""

import os
import signal
import time
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

from pyspark.sql.streaming.query import StreamingQuery

from spark_jobs.streams.stop_signals import finish_batches, stop_on_signals


@dataclass(eq=False)
class _Query:
    """The part of a query that is used; ``batches`` are the ids of its finished batches, reported one per call."""

    batches: list[int]
    busy: bool = True
    name: str = "one"
    isActive: bool = True  # noqa: N815 Spark's name
    stopped_after: int | None = None
    _reported: int = field(default=0)

    @property
    def status(self) -> dict[str, Any]:
        return {"isTriggerActive": self.busy}

    @property
    def lastProgress(self) -> SimpleNamespace:  # noqa: N802 Spark's name
        batch = self.batches[min(self._reported, len(self.batches) - 1)]
        self._reported += 1
        return SimpleNamespace(batchId=batch)

    def stop(self) -> None:
        self.isActive, self.stopped_after = False, self.lastProgress.batchId


def _as_query(query: _Query) -> StreamingQuery:
    return cast("StreamingQuery", query)


def test_one_signal_requests_a_stop_and_a_second_an_immediate_one() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with stop_on_signals() as stop:
        assert not stop.is_made
        os.kill(os.getpid(), signal.SIGTERM)
        stop.wait(5)
        assert stop.is_made
        assert not stop.is_urgent
        os.kill(os.getpid(), signal.SIGTERM)
        deadline = time.monotonic() + 5
        while not stop.is_urgent and time.monotonic() < deadline:
            time.sleep(0.01)
        assert stop.is_urgent
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_running_batch_is_waited_for() -> None:
    query = _Query(batches=[3, 3, 3, 4])
    assert finish_batches([_as_query(query)], timeout_s=30)
    assert query.stopped_after == 4


def test_an_idle_query_is_stopped_at_once() -> None:
    query = _Query(batches=[3], busy=False)
    assert finish_batches([_as_query(query)], timeout_s=30)
    assert query.stopped_after == 3


def test_after_the_timeout_or_on_giving_up_the_query_keeps_running() -> None:
    query = _Query(batches=[3])
    assert not finish_batches([_as_query(query)], timeout_s=0.2)
    assert not finish_batches([_as_query(query)], timeout_s=30, give_up=lambda: True)
    assert query.stopped_after is None
