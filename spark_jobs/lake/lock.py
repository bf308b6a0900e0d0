"""Locks between processes: above all, one driver per job at a time."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spark_jobs.config.sections import S3Settings
from spark_jobs.errors import LakeInUseError, LockLostError
from spark_jobs.lake.file_lock import is_locked, locked
from spark_jobs.lake.layout import Lake
from spark_jobs.places import CREDIT, DAYS_WRITER, LEDGER, LINEAGE, MARKS_WRITER, REPAIR, REQUEUE, lock_key

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Check = Callable[[], None]
"""Raises a LockLostError if the lock has been lost. It asks nobody, so it answers at once."""
_WORK = {
    REQUEUE: "a requeue or a bounded run",
    REPAIR: "a repair, a replay, marks that are applied, maintenance or a backup of what they write",
    CREDIT: "credit, or maintenance or a backup of its tables",
    MARKS_WRITER: "an update of marks, or maintenance or a backup of its table",
    DAYS_WRITER: "an update of gold/days, or maintenance or a backup of it",
    LEDGER: "an update of the ledger, or a backup",
    LINEAGE: "lineage",
}
"""By lock that is no job's, what may hold it."""
_RETRY_S = 0.5


@contextmanager
def hold_job(lake: Lake, job: str, s3: S3Settings, *, spark: "SparkSession | None" = None) -> Iterator[Check]:
    """Holds the lock of ``job`` on ``lake``: of its checkpoints, and of the tables that it writes.

    On a local lake the lock belongs to the Java process of ``spark``, which does the writing and may briefly outlive a
    killed Python process; the operating system releases it however that process ends. In an object store it is a lease.

    Args:
        lake: the lake.
        job: whose lock; or :data:`spark_jobs.places.REQUEUE`, which keeps out requeues and bounded runs.
        s3: gives the length of a lease.
        spark: the session that writes; None if only this process does.

    Raises:
        LakeInUseError: another process holds it.
        LakeError: the object store ignores conditional writes, or does not answer.
    """
    jvm = spark.sparkContext._jvm if spark else None  # noqa: SLF001 there is no public API for the JVM
    key = lock_key(job)
    if not lake.is_local:
        with _leased(lake, job, s3, jvm) as check:
            yield check
        return
    file = lake.path / key
    file.parent.mkdir(parents=True, exist_ok=True)
    with _locked_by_java(jvm, file) if jvm is not None else locked(file) as is_held:
        if not is_held:
            raise _refusal(lake, job, "another process")
        yield lambda: None


def is_held(lake: Lake, job: str, s3: S3Settings) -> bool:
    """Whether a process holds the lock of ``job`` on ``lake``; see :func:`hold_job`. Nobody is refused meanwhile.

    Of a lock in an object store, this shows in its next renewal: it takes up to the length of its holder's lease.

    Raises:
        LakeError: the object store does not answer.
    """
    key = lock_key(job)
    if lake.is_local:
        return is_locked(lake.path / key)
    from spark_jobs.lake.lease import look  # noqa: PLC0415
    from spark_jobs.lake.store.objects import Objects  # noqa: PLC0415 boto3 takes a moment

    assert isinstance(lake.files, Objects)  # noqa: S101 what is not local is in an object store
    is_free, _ = look(lake.files, key, s3.lease.total_seconds())
    return not is_free


@contextmanager
def hold_patiently(lake: Lake, job: str, s3: S3Settings, patience: timedelta) -> Iterator[Check]:
    """:func:`hold_job`, without Spark, after waiting for up to ``patience`` until whoever holds it is done.

    Raises:
        LakeInUseError: another process still holds it.
        LakeError: see :func:`hold_job`.
    """
    end = time.monotonic() + patience.total_seconds()
    with ExitStack() as held:
        while True:
            try:
                check = held.enter_context(hold_job(lake, job, s3))
            except LakeInUseError:
                if time.monotonic() >= end:
                    raise
                time.sleep(_RETRY_S)
            else:
                break
        yield check


@contextmanager
def _leased(lake: Lake, job: str, s3: S3Settings, jvm: Any) -> Iterator[Check]:
    from spark_jobs.lake.lease import Lease, holder  # noqa: PLC0415
    from spark_jobs.lake.store.conditional_writes import check_conditional_writes  # noqa: PLC0415 boto3 takes a moment
    from spark_jobs.lake.store.objects import Objects  # noqa: PLC0415

    assert isinstance(lake.files, Objects)  # noqa: S101 what is not local is in an object store
    check_conditional_writes(lake.files)
    java = (jvm.java.lang.ProcessHandle.current().pid(),) if jvm is not None else ()
    lease = Lease(lake.files, lock_key(job), s3.lease.total_seconds(), (os.getpid(), *java))
    if not lease.acquire():
        raise _refusal(lake, job, holder(lake.files.read(lease.key) or b""))

    def check() -> None:
        if why := lease.loss:
            what = _WORK.get(job) or f"job {job}"
            raise LockLostError(
                f"{what} has lost its lock on lake {lake.root}: {why}; another process may be at work now. Nothing is "
                "lost: run it again, and it goes on from what is written"
            )

    try:
        yield check
    finally:
        lease.release()


def _refusal(lake: Lake, job: str, by: str) -> LakeInUseError:
    if work := _WORK.get(job):
        return LakeInUseError(
            f"{work} is at work in lake {lake.root}, in {by}, and only one at a time may change what it changes: wait "
            "for it to end, or stop it"
        )
    return LakeInUseError(
        f"job {job} of lake {lake.root} is being run by {by}: two drivers would corrupt its checkpoints; wait for it "
        "to end, stop it, or give another --lake"
    )


@contextmanager
def _locked_by_java(jvm: Any, file: Path) -> Iterator[bool]:
    """Java has only POSIX locks, so a Java that several commands share opens a lock's file only once at a time."""
    from spark_jobs.spark import shared_java  # noqa: PLC0415 who has no Java needs no PySpark

    lock = shared_java.reserve(jvm, f"adloom.lock:{file.resolve()}")
    if lock is None:
        yield False
        return
    try:
        channel = jvm.java.io.RandomAccessFile(str(file), "rw").getChannel()
        lock.add(channel)
        yield channel.tryLock() is not None
    finally:
        shared_java.release(jvm, lock)
