"""The stream of a table that is held back at a frontier: each row once, none too early, whatever comes in between."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import JsonValue
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark_jobs.ingest.alignment import EVERYTHING, NOTHING
from spark_jobs.lake.notes import frontier_of, read_plan, version_opened, version_reached
from spark_jobs.spark.aligned import AlignedTable, source_of_streams

_NUMBERS = count()
_START = datetime(2026, 3, 1, tzinfo=UTC)


@dataclass
class Stream:
    """A table of hours, and a query that reads it."""

    spark: SparkSession
    folder: Path
    batches: list[list[int]] = field(default_factory=list)
    _query: StreamingQuery | None = None

    def __post_init__(self) -> None:
        self.table = AlignedTable(self.spark, str(self.folder / "table"))
        self.write([])

    def write(self, hours: list[int]) -> None:
        rows = [(hour, _START + timedelta(hours=hour)) for hour in hours]
        frame = self.spark.createDataFrame(rows, "hour INT, event_time TIMESTAMP")
        frame.write.format("delta").mode("append").save(str(self.folder / "table"))

    def start(self) -> None:
        rows = self.spark.readStream.format(source_of_streams(self.spark)).option("startingVersion", 0)
        writer = rows.load(str(self.folder / "table")).writeStream.foreachBatch(self._take)
        self._query = writer.option("checkpointLocation", str(self.folder / "checkpoint")).start()

    def _take(self, batch: DataFrame, _number: int) -> None:
        self.batches.append(sorted(row.hour for row in batch.collect()))

    def read(self) -> list[int]:
        """Reads what it may; returns the hours of all its batches since the last call."""
        assert self._query is not None
        before = len(self.batches)
        self._query.processAllAvailable()
        return sorted(hour for batch in self.batches[before:] for hour in batch)

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
    assert [batch for batch in stream.batches if batch] == [[1, 2], [3, 4], [5, 6]]


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
    plain = spark.readStream.format("delta").option("startingVersion", 0).load(str(stream.folder / "table"))
    writer = plain.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "other"))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    own, other = (tmp_path / name / "offsets" / "0" for name in ("checkpoint", "other"))
    assert own.read_text().splitlines()[2:] == other.read_text().splitlines()[2:]


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["write", "write", "frontier", "steps", "end", "restart", "read"]),
        st.lists(st.integers(0, 30), max_size=4),
    ),
    max_size=10,
)


@pytest.mark.derived
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
