"""The stream of a table that is held back at a frontier: each row once, none too early, whatever comes in between."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from delta.tables import DeltaTable
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import JsonValue
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from spark_jobs.lake.notes import (
    EVERYTHING,
    NOTHING,
    frontier_of,
    is_at_rest,
    read_plan,
    version_opened,
    version_reached,
)
from spark_jobs.spark.aligned import AlignedTable, source_of_streams

_NUMBERS = count()
_START = datetime(2026, 3, 1, tzinfo=UTC)


@dataclass
class Stream:
    """A table of hours, and a query that reads it."""

    spark: SparkSession
    folder: Path
    batches: list[list[int]] = field(default_factory=list)
    max_bytes: int = 2**40
    steps: tuple[int, ...] = ()
    most: int | None = None
    _query: StreamingQuery | None = None

    def __post_init__(self) -> None:
        self.table = AlignedTable(self.spark, str(self.folder / "table"))
        self.write([])

    def write(self, hours: list[int]) -> None:
        rows = [(hour, _START + timedelta(hours=hour)) for hour in hours]
        frame = self.spark.createDataFrame(rows, "hour INT, event_time TIMESTAMP")
        dated = frame.withColumn("event_date", F.to_date("event_time"))
        dated.write.format("delta").mode("append").partitionBy("event_date").save(str(self.folder / "table"))

    def start(self) -> None:
        rows = self.spark.readStream.format(source_of_streams(self.spark))
        rows = rows.option("maxBytesPerTrigger", f"{self.max_bytes}b")
        if self.steps:
            rows = rows.option("steps", ",".join(str(_at(hour)) for hour in self.steps) + f",{EVERYTHING}")
        writer = rows.load(str(self.folder / "table")).writeStream.foreachBatch(self._take)
        self._query = writer.option("checkpointLocation", str(self.folder / "checkpoint")).start()

    def _take(self, batch: DataFrame, _number: int) -> None:
        if self.most is not None and len(self.batches) >= self.most:
            raise RuntimeError
        if hours := sorted(row.hour for row in batch.collect()):
            self.batches.append(hours)

    def read(self) -> list[int]:
        """Reads what it may; returns the hours of all its batches since the last call."""
        assert self._query is not None
        before = len(self.batches)
        self._query.processAllAvailable()
        return sorted(hour for batch in self.batches[before:] for hour in batch)

    def fail_after(self, batches: int) -> None:
        """Reads, and fails in the batch after so many."""
        assert self._query is not None
        self.most = batches
        with pytest.raises(StreamingQueryException):
            self._query.processAllAvailable()
        self.most = None

    def stop(self) -> None:
        if self._query is not None:
            self._query.stop()

    def offset(self) -> JsonValue:
        files = (self.folder / "checkpoint" / "offsets").iterdir()
        last = max((file for file in files if file.name.isdigit()), key=lambda file: int(file.name))
        (found,) = read_plan(last.read_bytes()).reached
        return found


def _at(hour: int) -> int:
    return int((_START + timedelta(hours=hour)).timestamp() * 1_000_000)


@contextmanager
def _stream(spark: SparkSession, folder: Path) -> Iterator[Stream]:
    stream = Stream(spark, folder)
    try:
        yield stream
    finally:
        stream.stop()
        stream.table.release()


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> Iterator[Stream]:
    with _stream(spark, tmp_path) as found:
        yield found


def test_rows_after_the_frontier_wait_and_come_once_it_has_reached_them(stream: Stream) -> None:
    stream.write([7])
    stream.table.publish(1, [EVERYTHING])
    stream.start()
    assert stream.read() == [7]
    stream.write([1, 9, 5])
    stream.table.publish(2, [_at(4)])
    assert stream.read() == [1]
    assert frontier_of(stream.offset()) == _at(4)
    assert (version_reached(stream.offset()), version_opened(stream.offset())) == (1, 2)
    stream.write([4, 6, 2])
    stream.table.publish(3, [_at(5)])
    assert stream.read() == [2, 4, 5]
    stream.table.publish(3, [EVERYTHING])
    assert stream.read() == [6, 9]
    assert frontier_of(stream.offset()) is None
    assert version_reached(stream.offset()) == 3


def test_a_version_that_was_not_looked_at_waits_as_a_whole(stream: Stream) -> None:
    stream.table.publish(0, [EVERYTHING])
    stream.start()
    stream.write([1])
    assert stream.read() == []
    assert stream.table.is_overtaken
    stream.table.publish(1, [EVERYTHING])
    assert not stream.table.is_overtaken
    assert stream.read() == [1]


def test_the_way_to_a_frontier_is_taken_step_by_step(stream: Stream) -> None:
    stream.table.publish(0, [NOTHING])
    stream.start()
    stream.write([1, 2, 3, 4, 5, 6])
    stream.table.publish(1, [NOTHING])
    assert stream.read() == []
    stream.table.publish(1, [_at(2), _at(4), EVERYTHING])
    assert stream.read() == [1, 2, 3, 4, 5, 6]
    assert stream.batches == [[1, 2], [3, 4], [5, 6]]


def test_what_was_held_back_is_still_held_back_after_a_restart(stream: Stream) -> None:
    stream.table.publish(0, [EVERYTHING])
    stream.start()
    stream.write([1, 9])
    stream.table.publish(1, [_at(4)])
    assert stream.read() == [1]
    stream.stop()
    stream.table.publish(1, [NOTHING])
    stream.start()
    assert stream.read() == []
    stream.table.publish(1, [EVERYTHING])
    assert stream.read() == [9]


def test_without_a_frontier_the_offset_is_that_of_delta(stream: Stream, spark: SparkSession, tmp_path: Path) -> None:
    stream.write([1])
    stream.start()
    assert stream.read() == [1]
    plain = spark.readStream.format("delta").load(str(stream.folder / "table"))
    writer = plain.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "other"))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    own, other = (tmp_path / name / "offsets" / "0" for name in ("checkpoint", "other"))
    assert own.read_text().splitlines()[2:] == other.read_text().splitlines()[2:]


def _forget_old_versions(spark: SparkSession, table: Path) -> None:
    """Compacts the table and removes what a year of maintenance would: replaced files, and commits of the log."""
    name = f"delta.`{table}`"
    spark.sql(f"OPTIMIZE {name}")
    DeltaTable.forPath(spark, str(table)).vacuum(0)
    log = table / "_delta_log"
    newest = max(int(file.stem) for file in log.glob("*.json"))
    jvm: Any = spark._jvm
    jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, str(table)).checkpoint()
    for file in log.glob("*.json"):
        if int(file.stem) < newest:
            file.unlink()


@pytest.fixture
def without_retention_check(spark: SparkSession) -> Iterator[None]:
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    yield
    spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")


@pytest.mark.usefixtures("without_retention_check")
def test_rows_that_lie_there_come_in_the_order_of_time_though_their_versions_are_gone(
    stream: Stream, spark: SparkSession
) -> None:
    for hours in ([40, 1], [30, 2], [50, 20]):
        stream.write(hours)
    _forget_old_versions(spark, stream.folder / "table")
    stream.steps = (10, 35)
    stream.start()
    assert stream.read() == [1, 2, 20, 30, 40, 50]
    assert stream.batches == [[1, 2], [20, 30], [40, 50]]
    stream.write([7, 60])
    assert stream.read() == [7, 60]


def test_a_stream_that_is_stopped_on_its_way_through_old_rows_goes_on_there(stream: Stream) -> None:
    stream.write([40, 1])
    stream.write([30, 2])
    stream.steps = (10, 35)
    stream.start()
    stream.fail_after(1)
    assert stream.batches == [[1, 2]]
    assert is_at_rest(stream.offset())
    assert version_reached(stream.offset()) == -1
    stream.write([5, 41])
    # The way is computed again, from what is there now.
    stream.steps = (8, 39)
    stream.start()
    assert stream.read() == [5, 30, 40, 41]
    assert stream.batches[1:] == [[30], [5], [40, 41]]
    assert not is_at_rest(stream.offset())


def test_a_batch_takes_whole_versions_up_to_a_size(stream: Stream) -> None:
    stream.max_bytes = 1
    stream.start()
    assert stream.read() == []
    stream.stop()
    for hours in ([3, 30, 60], [2], [1, 70]):
        stream.write(hours)
    stream.start()
    assert stream.read() == [1, 2, 3, 30, 60, 70]
    assert stream.batches == [[3, 30, 60], [2], [1, 70]]


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["write", "write", "frontier", "steps", "end", "restart", "read"]),
        st.lists(st.integers(0, 30), max_size=4),
    ),
    max_size=10,
)


@pytest.mark.slow
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(steps=_STEPS)
def test_each_row_comes_once_and_none_before_the_frontier(
    spark: SparkSession, tmp_path: Path, steps: list[tuple[str, list[int]]]
) -> None:
    folder = tmp_path / str(next(_NUMBERS))
    with _stream(spark, folder) as stream:
        _walk(stream, steps)


def _walk(stream: Stream, steps: list[tuple[str, list[int]]]) -> None:
    written: list[int] = []
    found: list[int] = []
    version, frontier = 0, EVERYTHING
    stream.table.publish(0, [EVERYTHING])
    stream.start()

    def read() -> None:
        rows = stream.read()
        assert all(_at(hour) <= frontier for hour in rows)
        found.extend(rows)

    def publish(frontiers: list[int]) -> None:
        stream.table.publish(version, frontiers)

    moves: dict[str, Callable[[list[int]], list[int]]] = {
        "frontier": lambda hours: [_at(max(hours, default=0))],
        "steps": lambda hours: [_at(hour) for hour in sorted(hours)] or [NOTHING],
        "end": lambda _: [EVERYTHING],
    }
    for kind, hours in steps:
        if kind == "write":
            stream.write(hours)
            written += hours
            version += 1
            publish([frontier])
        elif kind in moves:
            way = moves[kind](hours)
            frontier = way[-1] if frontier == EVERYTHING or way[-1] > frontier else frontier
            publish([*(step for step in way if step < frontier), frontier])
        elif kind == "restart":
            stream.stop()
            stream.start()
        read()
    frontier = EVERYTHING
    publish([EVERYTHING])
    read()
    assert sorted(found) == sorted(written)
