"""How a driver ends while batches may be running."""

import threading
import time
from dataclasses import dataclass, field
from typing import Any, NoReturn, cast

import pytest

from spark_jobs.errors import LockLostError, QueryFailedError
from spark_jobs.streams.hard_exit import finishing_batches, guarding_lock
from spark_jobs.streams.stop_signals import StopRequest
from tests.support.servers import wait_until


class _Ended(BaseException):
    """Stands for the end of the process."""


@dataclass
class _End:
    """Records how the process would have ended."""

    ends: list[tuple[int, str]] = field(default_factory=list)

    def __call__(self, code: int, why: str) -> NoReturn:
        self.ends.append((code, why))
        raise _Ended


@dataclass(eq=False)
class _Query:
    """A query whose batch ends after ``busy_s`` seconds."""

    busy_s: float
    name: str = "ingest"
    isActive: bool = True  # noqa: N815 Spark's name
    lastProgress: None = None  # noqa: N815 Spark's name
    _began: float = field(default_factory=time.monotonic)

    @property
    def status(self) -> dict[str, Any]:
        return {"isTriggerActive": time.monotonic() < self._began + self.busy_s}

    def stop(self) -> None:
        self.isActive = False


def _run(query: _Query, end: _End, *, fails: bool, stop: StopRequest | None = None, timeout_s: float = 0.5) -> None:
    queries = lambda: [cast("Any", query)]  # noqa: E731
    with finishing_batches("attribute", queries, stop or StopRequest(), timeout_s, end):
        if fails:
            raise QueryFailedError("query sessionize failed")


def test_other_queries_finish_their_batches_when_one_has_failed() -> None:
    query, end = _Query(busy_s=0.2), _End()
    with pytest.raises(QueryFailedError, match="sessionize"):
        _run(query, end, fails=True, timeout_s=20)
    assert (query.isActive, end.ends) == (False, [])


@pytest.mark.parametrize(("fails", "code"), [(True, 1), (False, 143)], ids=["failed", "stopped"])
def test_batches_that_do_not_finish_end_the_process(fails: bool, code: int) -> None:  # noqa: FBT001 a parameter
    end = _End()
    with pytest.raises(_Ended):
        _run(_Query(busy_s=60), end, fails=fails)
    ((ended_with, why),) = end.ends
    assert ended_with == code
    assert "ingest" in why
    assert ("query sessionize failed" in why) == fails
    assert "job.stop_timeout 500ms" in why


def test_a_second_signal_does_not_wait() -> None:
    end, stop = _End(), StopRequest(signals=2)
    with pytest.raises(_Ended):
        _run(_Query(busy_s=60), end, fails=False, stop=stop, timeout_s=60)
    assert "a second signal" in end.ends[0][1]


def test_a_driver_that_has_lost_its_lock_ends_even_if_it_is_waiting_for_something() -> None:
    is_lost, ended = threading.Event(), threading.Event()
    ends: list[tuple[int, str]] = []

    def check() -> None:
        if is_lost.is_set():
            raise LockLostError("it expired")

    def end(code: int, why: str) -> None:
        ends.append((code, why))
        ended.set()

    with guarding_lock("attribute", check, cast("Any", end)):
        time.sleep(1)
        assert not ends
        is_lost.set()
        wait_until(ended.is_set, 10, "the driver goes on")
    assert ends == [(1, "attribute: it expired")]
