"""Streams of a table that hold back what is ahead of a frontier of event time: see spark_jobs/spark/jars/java.

Spark has no such source. On a machine with the jars of an earlier release, where adloom's own classes are missing, a
table is read as it comes.
"""

from collections.abc import Sequence
from typing import Any

from py4j.java_gateway import JavaClass
from pyspark.sql import SparkSession


def is_aligned(spark: SparkSession) -> bool:
    """Whether there is a source that holds rows back."""
    return _alignments(spark) is not None


def source_of_streams(spark: SparkSession) -> str:
    """Spark's name of the source with which a table is streamed."""
    return "adloom.AlignedDelta" if is_aligned(spark) else "delta"


class AlignedTable:
    """A table whose streams, in this process, read no further than they are let."""

    def __init__(self, spark: SparkSession, place: str) -> None:
        """``place``: the table's URI. Its streams wait until :meth:`publish`."""
        self._place = place
        self._known = _alignments(spark)

    def publish(self, version: int, frontiers: Sequence[int]) -> None:
        """Lets streams read versions up to ``version``, and of those the rows up to the last of ``frontiers``.

        Args:
            version: of the table; rows of later ones wait.
            frontiers: event times (microseconds since 1970), ascending; a batch takes one step to the next.
        """
        if self._known:
            self._known.publish(self._place, version, ",".join(map(str, frontiers)))

    @property
    def is_overtaken(self) -> bool:
        """Whether a stream waits for a version later than the published one."""
        return bool(self._known) and bool(self._known.isOvertaken(self._place))

    def release(self) -> None:
        """Streams read the table as it comes."""
        if self._known:
            self._known.forget(self._place)


def _alignments(spark: SparkSession) -> Any:
    """Java's class that streams ask how far they may read; None without it."""
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001 there is no public API for the JVM
    found = jvm.adloom.Alignments
    return found if isinstance(found, JavaClass) else None
