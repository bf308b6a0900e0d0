"""Locks between processes, above all: one driver per job at a time."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spark_jobs.contracts.errors import LakeInUseError
from spark_jobs.contracts.places import REQUEUE, lock_key
from spark_jobs.contracts.sections import S3Settings
from spark_jobs.lake.layout import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Check = Callable[[], None]
"""Raises a LakeInUseError if the lock has been lost."""


@contextmanager
def hold_job(lake: Lake, job: str, s3: S3Settings, *, spark: "SparkSession | None" = None) -> Iterator[Check]:
    """Holds the lock of ``job`` on ``lake``: of its checkpoints, and of the tables that it writes.

    On a local lake the lock belongs to the Java process of ``spark``, which does the writing and may briefly outlive a
    killed Python process; the operating system releases it however that process ends. In an object store it is a lease.

    Args:
        lake: the lake.
        job: whose lock; or :data:`spark_jobs.contracts.places.REQUEUE`, which keeps out requeues and bounded runs.
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
    with _locked_by_java(jvm, file) if jvm is not None else _locked(file) as is_held:
        if not is_held:
            raise _refusal(lake, job, "another process")
        yield lambda: None


@contextmanager
def _leased(lake: Lake, job: str, s3: S3Settings, jvm: Any) -> Iterator[Check]:
    from spark_jobs.runtime.conditions import check_conditional_writes  # noqa: PLC0415 boto3 takes a moment
    from spark_jobs.runtime.lease import Lease, holder  # noqa: PLC0415
    from spark_jobs.runtime.objects import Objects  # noqa: PLC0415

    assert isinstance(lake.files, Objects)  # noqa: S101 what is not local is in an object store
    check_conditional_writes(lake.files)
    java = (jvm.java.lang.ProcessHandle.current().pid(),) if jvm is not None else ()
    lease = Lease(lake.files, lock_key(job), s3.lease.total_seconds(), (os.getpid(), *java))
    if not lease.acquire():
        raise _refusal(lake, job, holder(lake.files.read(lease.key) or b""))

    def check() -> None:
        if lease.is_lost:
            raise _refusal(lake, job, holder(lake.files.read(lease.key) or b""))

    try:
        yield check
    finally:
        lease.release()


def _refusal(lake: Lake, job: str, by: str) -> LakeInUseError:
    if job == REQUEUE:
        return LakeInUseError(
            f"records of lake {lake.root} are being requeued, or it is in a bounded run, by {by}: wait for it to end"
        )
    return LakeInUseError(
        f"job {job} of lake {lake.root} is being run by {by}: two drivers would corrupt its checkpoints; "
        "wait for it to end, stop it, or give another --lake"
    )


@contextmanager
def waiting_for(file: Path) -> Iterator[None]:
    """Waits for the lock on ``file``, which is created if need be, and holds it; the system releases it at the end."""
    with file.open("ab") as opened:
        fcntl.lockf(opened, fcntl.LOCK_EX)
        yield


@contextmanager
def _locked(file: Path) -> Iterator[bool]:
    with file.open("ab") as opened:
        try:
            fcntl.lockf(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
        else:
            yield True


@contextmanager
def _locked_by_java(jvm: Any, file: Path) -> Iterator[bool]:
    from spark_jobs.runtime import shared_java  # noqa: PLC0415 who has no Java needs no PySpark

    channel = jvm.java.io.RandomAccessFile(str(file), "rw").getChannel()
    shared_java.release_at_end(channel)
    try:
        yield _try_lock(channel)
    finally:
        channel.close()


def _try_lock(channel: Any) -> bool:
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415 who has no Java needs no bridge to it

    try:
        return channel.tryLock() is not None
    except Py4JJavaError as error:
        if error.java_exception.getClass().getSimpleName() == "OverlappingFileLockException":
            return False  # this process holds it itself
        raise
