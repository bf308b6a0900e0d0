"""One driver a job at a time."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from spark_jobs.contracts.errors import LakeInUseError
from spark_jobs.contracts.lake import Lake


@contextmanager
def hold_job(spark: SparkSession, lake: Lake, job: str) -> Iterator[None]:
    """Holds the lock of ``job`` on ``lake``: of its checkpoints, and of the tables that it writes.

    The lock belongs to the Java process, which does the writing and may outlive a killed Python process for a moment;
    it goes with that process, however it ends.

    Raises:
        LakeInUseError: another process holds it.
    """
    lock_file = lake.lock_file(job)
    lock_file.parent.mkdir(parents=True, exist_ok=True)
    jvm = spark.sparkContext._jvm  # noqa: SLF001 the JVM has no public door
    assert jvm is not None  # noqa: S101 it is there as long as the session is
    channel = jvm.java.io.RandomAccessFile(str(lock_file), "rw").getChannel()
    try:
        if not _try_lock(channel):
            raise LakeInUseError(
                f"job {job} of lake {lake.root} is being run by another process: two would corrupt its checkpoints; "
                "wait for it to end or stop it, or give another --lake"
            )
        yield
    finally:
        channel.close()


def _try_lock(channel: Any) -> bool:
    try:
        return channel.tryLock() is not None
    except Py4JJavaError as error:
        if error.java_exception.getClass().getSimpleName() == "OverlappingFileLockException":
            return False  # this very process holds it
        raise
