"""Locks in an object store: who holds one knows when it is lost, and who wants one takes nothing from a holder."""

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from spark_jobs.config.sections import S3Settings
from spark_jobs.errors import LakeError, LakeInUseError, LockLostError
from spark_jobs.lake import lease
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.lease import Lease
from spark_jobs.lake.lock import hold_job
from spark_jobs.places import lock_key
from spark_jobs.queries.jobs import ATTRIBUTE_JOB
from spark_jobs.streams.desired_state import stop_requested_at
from spark_jobs.streams.stop_jobs import stop_jobs
from tests.support.memory_store import MemoryStore
from tests.support.servers import wait_until

_KEY = lock_key(ATTRIBUTE_JOB)
_ELSEWHERE = {"host": "elsewhere", "here": "another machine"}
_Fault = Callable[[], None]


def _raise(error: Exception) -> _Fault:
    def fault() -> None:
        raise error

    return fault


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def lake(store: MemoryStore) -> Lake:
    return Lake(store.root, store)


def _settings(seconds: float) -> S3Settings:
    """With a lease that is shorter than settings may have it."""
    return S3Settings().model_copy(update={"lease": timedelta(seconds=seconds)})


@pytest.fixture
def leases(store: MemoryStore) -> Iterator[Callable[[float], Lease]]:
    """Makes leases of processes on other machines, and ends them."""
    made: list[Lease] = []

    def make(seconds: float) -> Lease:
        made.append(Lease(store, _KEY, seconds, (1,)))
        return made[-1]

    yield make
    for one in made:
        one._ended.set()


# What the holder believes.


@pytest.mark.parametrize(
    "error",
    [LakeError("the store is away"), OSError(24, "Too many open files"), RuntimeError("what nobody thought of")],
    ids=lambda error: type(error).__name__,
)
def test_a_lock_that_cannot_be_renewed_for_its_length_is_lost(store: MemoryStore, lake: Lake, error: Exception) -> None:
    with hold_job(lake, ATTRIBUTE_JOB, _settings(0.8)) as check:
        check()
        store.fault = _raise(error)
        time.sleep(0.3)
        check()  # a failed renewal is no loss
        time.sleep(0.8)
        with pytest.raises(LockLostError, match=r"could not be renewed for .* s"):
            check()
        store.fault = None


@pytest.mark.parametrize("error", [OSError(2, "ca.pem"), RuntimeError("odd")], ids=lambda error: type(error).__name__)
def test_whatever_fails_a_renewal_is_tried_again(store: MemoryStore, lake: Lake, error: Exception) -> None:
    with hold_job(lake, ATTRIBUTE_JOB, _settings(1.2)) as check:
        store.fault = _raise(error)
        time.sleep(0.6)
        store.fault = None
        before = store.writes[_KEY]
        wait_until(lambda: store.writes[_KEY] > before + 2, 10, "it was not renewed")
        check()


def test_a_renewal_counts_from_when_it_was_sent_not_from_its_answer(
    store: MemoryStore, leases: Callable[[float], Lease]
) -> None:
    held, now = leases(20), [100.0]
    held.clock = lambda: now[0]

    def answer_late() -> None:
        now[0], store.fault = 115.0, _raise(LakeError("the store is away"))

    store.after = answer_late
    assert held.acquire()
    now[0] = 119.9
    assert not held.loss
    now[0] = 120.0
    assert "20 s" in held.loss


def test_slow_answers_alone_lose_no_lock(store: MemoryStore, lake: Lake) -> None:
    with hold_job(lake, ATTRIBUTE_JOB, _settings(2)) as check:
        store.after = lambda: time.sleep(0.8)  # more than the quarter after which a lock is renewed
        for _ in range(40):
            check()
            time.sleep(0.1)


def test_an_answer_that_was_lost_is_no_loss_and_no_renewal(
    store: MemoryStore, leases: Callable[[float], Lease]
) -> None:
    held, now = leases(20), [100.0]
    held.clock = lambda: now[0]
    assert held.acquire()
    store.after = _raise(LakeError("no answer"))
    now[0] = 110.0
    with pytest.raises(LakeError):
        held._renew_once(store)
    store.after = None
    assert not held._renew_once(store), "it is not known when the store carried it out"
    now[0] = 120.0
    assert held.loss
    assert held._renew_once(store), "under the tag that was found"
    assert not held.loss


@pytest.mark.parametrize("round_", range(3))
def test_who_takes_a_lock_over_does_so_after_its_holder_knows_that_it_is_lost(
    store: MemoryStore, lake: Lake, leases: Callable[[float], Lease], round_: int
) -> None:
    with hold_job(lake, ATTRIBUTE_JOB, _settings(1)) as check:
        time.sleep(0.3 * round_)
        holder = threading.get_ident()
        renewing = {thread.ident for thread in threading.enumerate()} - {holder}
        store.fault = lambda: _raise(OSError())() if threading.get_ident() in renewing else None
        assert leases(0.2).acquire()
        with pytest.raises(LockLostError):
            check()


def test_a_lock_that_another_has_taken_is_lost(store: MemoryStore, lake: Lake) -> None:
    with hold_job(lake, ATTRIBUTE_JOB, _settings(4)) as check:
        store.write(_KEY, json.dumps({"name": "other", "by": "process 7", **_ELSEWHERE}).encode())
        with pytest.raises(LockLostError, match="process 7 on elsewhere"):
            _again(check)


def _again(check: Callable[[], None]) -> None:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        check()
        time.sleep(0.05)


# Who wants a lock.


def _hold_elsewhere(store: MemoryStore, *, seconds: float, **others: object) -> None:
    lock = {"name": "other", "is_held": True, "lease_seconds": seconds, **_ELSEWHERE, **others}
    store.write(_KEY, json.dumps(lock).encode())


def test_a_lock_that_is_released_meanwhile_is_taken(store: MemoryStore, leases: Callable[[float], Lease]) -> None:
    _hold_elsewhere(store, seconds=4)
    threading.Timer(0.3, lambda: _hold_elsewhere(store, seconds=4, is_held=False)).start()
    assert leases(4).acquire()


def test_a_lock_that_is_renewed_meanwhile_is_refused(store: MemoryStore, lake: Lake) -> None:
    _hold_elsewhere(store, seconds=4)
    threading.Timer(0.3, lambda: _hold_elsewhere(store, seconds=4, renewals=2)).start()
    with pytest.raises(LakeInUseError, match="elsewhere"), hold_job(lake, ATTRIBUTE_JOB, _settings(4)):
        pytest.fail("held twice")


def test_asking_whether_a_job_runs_takes_no_lock(store: MemoryStore, lake: Lake) -> None:
    _hold_elsewhere(store, seconds=0.2)
    before = store.writes[_KEY]
    assert list(stop_jobs(lake, [ATTRIBUTE_JOB], _settings(0.2), patience_s=1)) == [(ATTRIBUTE_JOB, False)]
    assert store.writes[_KEY] == before
    assert stop_requested_at(lake, ATTRIBUTE_JOB) is None


# Whose processes have ended.

_PROCESS, _OTHERS = 4242, 1


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A /proc in which only process 1 is running, and can be seen by everybody."""
    monkeypatch.setattr(lease, "PROC", tmp_path)
    (tmp_path / str(_OTHERS)).mkdir()
    (tmp_path / str(_OTHERS) / "stat").write_text("1 (init) S " + " ".join(map(str, range(1, 40))))
    return tmp_path


def _held_here(store: MemoryStore, **uid: int) -> None:
    _hold_elsewhere(store, here=lease.here(), processes={str(_PROCESS): "123"}, seconds=1, **uid)


def _is_taken_at_once(make: Callable[[float], Lease]) -> bool:
    begin = time.monotonic()
    assert make(1).acquire()
    return time.monotonic() - begin < 0.5


@pytest.mark.usefixtures("proc")
def test_a_lock_whose_processes_have_ended_is_taken_at_once(
    store: MemoryStore, leases: Callable[[float], Lease]
) -> None:
    _held_here(store, uid=os.geteuid())
    assert _is_taken_at_once(leases)


@pytest.mark.parametrize("uid", [{"uid": 4711}, {}], ids=["another-user", "an-earlier-version"])
@pytest.mark.parametrize(
    ("sees_others", "at_once"),
    [pytest.param(True, True, id="who-can-be-seen"), pytest.param(False, False, id="who-cannot-be-seen")],
)
def test_processes_of_another_user_have_ended_only_if_they_could_be_seen(
    proc: Path,
    store: MemoryStore,
    leases: Callable[[float], Lease],
    monkeypatch: pytest.MonkeyPatch,
    uid: dict[str, int],
    *,
    sees_others: bool,
    at_once: bool,
) -> None:
    """With hidepid=2, /proc has only one's own."""
    own = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own + 1 if sees_others else own)
    assert (proc / str(_OTHERS)).stat().st_uid == own
    _held_here(store, **uid)
    assert _is_taken_at_once(leases) is at_once


def test_a_lock_says_whose_it_is(store: MemoryStore, leases: Callable[[float], Lease]) -> None:
    assert leases(5).acquire()
    assert json.loads(store.read(_KEY) or b"")["uid"] == os.geteuid()
