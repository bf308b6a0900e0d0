"""The operator ``deduplicate`` by itself: when it forgets."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark_jobs.config.sections import DeduplicateSettings
from spark_jobs.contract.events import CLICK
from spark_jobs.queries.deduplicate.operator import deduplicate

_SETTINGS = DeduplicateSettings(watermark=timedelta(minutes=64))
"""A step is a minute."""
_START = datetime(2026, 3, 1, tzinfo=UTC)
Events = dict[str, str]
"""By id, the time of an event since the start."""


@pytest.fixture
def query(spark: SparkSession, tmp_path: Path) -> Iterator[StreamingQuery]:
    """Reads the files of ``input``, and keeps in ``kept.txt`` the ids of each batch."""
    (tmp_path / "input").mkdir()
    rows = spark.readStream.schema("event_type STRING, event_id STRING, event_time TIMESTAMP").json(
        str(tmp_path / "input")
    )

    def keep(batch: DataFrame, _number: int) -> None:
        (tmp_path / "kept.txt").write_text(" ".join(sorted(row["event_id"] for row in batch.collect())))

    running = deduplicate(rows, _SETTINGS).writeStream.foreachBatch(keep)
    started = running.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    yield started
    started.stop()


def _batch(query: StreamingQuery, folder: Path, number: int, events: Events) -> tuple[str, int, int]:
    """The ids that were kept, and how many keys were forgotten and remembered."""
    lines = []
    for event_id, text in events.items():
        hours, minutes, seconds = map(int, text.split(":"))
        time = _START + timedelta(hours=hours, minutes=minutes, seconds=seconds)
        lines.append(json.dumps({"event_type": CLICK, "event_id": event_id, "event_time": time.isoformat()}))
    draft = folder / f"{number}.json"
    draft.write_text("\n".join(lines))
    draft.rename(folder / "input" / draft.name)
    query.processAllAvailable()
    progress = query.lastProgress
    assert progress is not None
    (state,) = progress.stateOperators
    return (folder / "kept.txt").read_text(), state.numRowsRemoved, state.numRowsTotal


def test_a_key_is_forgotten_when_the_watermark_enters_another_step_after_it_expired(
    query: StreamingQuery, tmp_path: Path
) -> None:
    # What arrives moves the watermark of the next batch: it is 64 minutes behind.
    timeline: list[tuple[str, Events, tuple[str, int, int]]] = [
        ("nothing to forget", {"a": "00:00:00"}, ("a", 0, 1)),
        ("nor yet", {"b": "02:08:00", "e": "00:00:20"}, ("b e", 0, 3)),
        ("01:04:00, when a expires", {"c": "02:08:30"}, ("c", 1, 3)),
        ("01:04:30, e expired in the same step", {"d": "02:09:10", "e": "01:10:00"}, ("d", 0, 4)),
        ("01:05:10, in another step, after the batch", {"e": "01:11:00"}, ("", 1, 3)),
        ("forgotten, and on time", {"e": "01:12:00"}, ("e", 0, 4)),
    ]
    for number, (what, events, expected) in enumerate(timeline):
        assert _batch(query, tmp_path, number, events) == expected, what
