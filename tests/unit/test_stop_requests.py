"""Requests to stop, made through the lake: which of them a driver heeds."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from spark_jobs.config.settings import Settings
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from spark_jobs.queries.jobs import ATTRIBUTE_JOB
from spark_jobs.spark.open_lake import OpenLake
from spark_jobs.streams import service
from spark_jobs.streams.desired_state import request_stop
from spark_jobs.streams.stop_requests import StopRequests
from spark_jobs.streams.stop_signals import StopRequest

_NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return open_lake(str(tmp_path / "lake"))


def _is_heeded(requests: StopRequests, stop: StopRequest | None = None) -> bool:
    stop = stop or StopRequest()
    requests.heed(stop)
    return stop.is_made


def test_a_request_from_before_the_driver_is_not_meant_for_it(lake: Lake) -> None:
    request_stop(lake, ATTRIBUTE_JOB, _NOW)
    assert not _is_heeded(StopRequests(lake, ATTRIBUTE_JOB, look_s=0))


@pytest.mark.parametrize("clock", [timedelta(seconds=1), timedelta(hours=-1)], ids=["later", "by-a-slow-clock"])
@pytest.mark.parametrize("before", [True, False], ids=["after-another", "the-first"])
def test_any_other_is(lake: Lake, clock: timedelta, before: bool) -> None:  # noqa: FBT001 a parameter
    if before:
        request_stop(lake, ATTRIBUTE_JOB, _NOW)
    requests = StopRequests(lake, ATTRIBUTE_JOB, look_s=0)
    assert not _is_heeded(requests)
    request_stop(lake, ATTRIBUTE_JOB, _NOW + clock)
    assert _is_heeded(requests)


def test_whoever_submits_a_driver_removes_what_was_there_so_that_it_heeds_all_it_finds(lake: Lake) -> None:
    """A cluster may take minutes to start it, and a request that comes meanwhile is meant for it."""
    request_stop(lake, ATTRIBUTE_JOB, _NOW)
    assert _is_heeded(StopRequests(lake, ATTRIBUTE_JOB, is_cleared=True, look_s=0))


def test_a_lake_that_does_not_answer_stops_nothing(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = StopRequests(lake, ATTRIBUTE_JOB, look_s=0)

    def fail(_: str) -> bytes:
        raise OSError("away")

    with monkeypatch.context() as patched:
        patched.setattr(type(lake.files), "read", lambda _, key: fail(key))
        assert not _is_heeded(requests)
    request_stop(lake, ATTRIBUTE_JOB, _NOW)
    assert _is_heeded(requests)


def test_a_request_made_as_soon_as_the_lock_is_held_reaches_the_driver(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`adloom stop` asks once it sees the lock held; claims and initial states take a while after that."""

    @contextmanager
    def hold(*_: Any) -> Iterator[Any]:
        request_stop(lake, ATTRIBUTE_JOB, _NOW)
        yield lambda: None

    @contextmanager
    def nothing(*_: Any) -> Iterator[None]:
        yield

    for name in ("_claim", "copy_initial"):
        monkeypatch.setattr(service, name, lambda *_: None)
    for name in ("_reporting", "watching_itself"):
        monkeypatch.setattr(service, name, nothing)
    monkeypatch.setattr(OpenLake, "hold", hold)
    stop = _Impatient()
    opened = OpenLake(lake.root, lake.files, Settings(), cast("Any", SimpleNamespace(sparkContext=None)))
    assert service.run_job(opened, ATTRIBUTE_JOB, stop) is service.ServiceOutcome.STOPPED
    assert stop.waits < 100


class _Impatient(StopRequest):
    """Fails instead of waiting for ever."""

    waits = 0

    def wait(self, seconds: float) -> None:
        self.waits += 1
        assert self.waits < 100, "the request was lost"
        super().wait(0 if self.is_made else min(seconds, 0.1))
