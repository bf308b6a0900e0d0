"""A later release keeps more of each key than an earlier one: a running checkpoint goes on."""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession

from spark_jobs.queries.state_functions.processors import StatusProcessor
from spark_jobs.queries.user_status.rule import Presence, StatusChange
from spark_jobs.spark.names import KEYED_STATE_CONF, STATE_VALUE
from spark_jobs.spark.session import using

_DAY_US = 1_714_521_600_000_000
"""2024-05-01, in microseconds since 1970."""
_MINUTE_US = 60_000_000
_HOUR_US = 60 * _MINUTE_US


def _later_release() -> StatusProcessor:
    """Counts the events of each user as well. A class of its own function goes to the workers as a whole."""

    class Counting(StatusProcessor):
        schema = "status STRING, last_us BIGINT, waiting ARRAY<BIGINT>, events BIGINT, timer_ms BIGINT"
        events = 0

        def take(self, known: Presence, rows: Iterable[Row], until_us: int) -> tuple[Presence, Iterable[StatusChange]]:
            found = list(rows)
            self.events += len(found)
            return super().take(known, found, until_us)

        def decode(self, fields: tuple[Any, ...] | None) -> Presence:
            # What the earlier release has written has no number yet.
            self.events = (fields[-1] or 0) if fields else 0
            return super().decode(fields[:-1] if fields else None)

        def encode(self, known: Presence) -> tuple[Any, ...]:
            return (*super().encode(known), self.events)

    return Counting(_HOUR_US, None)


def _write(folder: Path, name: str, *events: tuple[str, float]) -> None:
    folder.mkdir(exist_ok=True)
    rows = [{"user_id": user, "event_us": int(_DAY_US + minute * _MINUTE_US)} for user, minute in events]
    file = folder / f"{name}.json"
    file.write_text("\n".join(map(json.dumps, rows)))
    # Files are taken in the order in which they were changed.
    os.utime(file, (ord(name), ord(name)))


def _run(spark: SparkSession, processor: StatusProcessor, folder: Path, checkpoint: Path) -> list[tuple[str, str, int]]:
    """The rows that ``processor`` emits for the new files in ``folder``, times in minutes."""
    put_out: list[tuple[str, str, int]] = []

    def keep(batch: DataFrame, _batch_id: int) -> None:
        put_out.extend((row[0], row[1], (row[2] - _DAY_US) // _MINUTE_US) for row in batch.collect())

    events = (
        spark.readStream.schema("user_id STRING, event_us BIGINT").option("maxFilesPerTrigger", 1).json(str(folder))
    )
    timed = events.selectExpr("*", "timestamp_micros(event_us) AS event_time").withWatermark("event_time", "10 minutes")
    rows = timed.groupBy("user_id").transformWithState(processor, StatusProcessor.output, "Append", "EventTime")
    with using(spark, KEYED_STATE_CONF):
        writer = rows.writeStream.foreachBatch(keep).option("checkpointLocation", str(checkpoint))
        writer.trigger(availableNow=True).start().awaitTermination()
    return put_out


def _known(spark: SparkSession, checkpoint: Path) -> dict[str, dict[str, Any]]:
    state = spark.read.format("statestore").option("stateVarName", STATE_VALUE).load(str(checkpoint))
    return {row["key"]["user_id"]: row["value"].asDict() for row in state.collect()}


def test_a_field_is_added_to_the_state_of_a_running_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    folder, checkpoint = tmp_path / "events", tmp_path / "checkpoint"
    earlier = StatusProcessor(_HOUR_US, None)
    _write(folder, "a", ("u1", 0), ("u2", 5))
    _write(folder, "b", ("u2", 30))
    assert _run(spark, earlier, folder, checkpoint) == []
    assert "events" not in _known(spark, checkpoint)["u1"]

    _write(folder, "c", ("u1", 39), ("u3", 50))
    _write(folder, "d", ("u3", 60))
    put_out = _run(spark, _later_release(), folder, checkpoint)
    assert sorted(put_out) == [("u1", "active", 39), ("u1", "online", 0), ("u2", "active", 30), ("u2", "online", 5)]
    known = _known(spark, checkpoint)
    assert known["u1"]["events"] == 1, "of those that the later release has seen"
    assert known["u3"]["events"] == 2
    assert known["u2"]["status"] == "active"
