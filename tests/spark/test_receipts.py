"""The time of receipt never goes back, whatever the clock does: order of copies and ledger stay right."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import ATTRIBUTIONS, BRONZE_EVENTS, SILVER_EVENTS
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.notes import CommitNote
from spark_jobs.lake.open import open_lake
from spark_jobs.ledger.model import RecordKind
from spark_jobs.queries import receipts
from spark_jobs.queries.receipts import ReceiptClock
from spark_jobs.restatements.repair import repair
from spark_jobs.spark.open_lake import OpenLake
from tests.golden.runs import STANDARD
from tests.support.lakes import read_ledger, read_table
from tests.support.runs import ONE_BY_ONE, run_in
from tests.support.source_files import write_files
from tests.support.timeline import Case

_SETTINGS = Settings.model_validate({"ingest": ONE_BY_ONE})
_CASE = Case(
    "two copies of a late impression, the clock set back by a day between them",
    """
16:00:00  act  a1 u1
---
16:00:01  act  a2 u1
---
09:00:00  imp  i1 u1 c1 cost=100
---
09:00:00  imp  i1 u1 c1 cost=999
16:00:02  act  a3 u1
---
16:00:03  act  a4 u1
""",
    STANDARD,
)


@pytest.mark.slow
def test_of_two_copies_the_first_counts_though_the_clock_was_set_back(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arriving = sorted(write_files(tmp_path / "arriving", _CASE.files()).iterdir())
    source, lake = tmp_path / "source", open_lake(str(tmp_path / "lake"))
    source.mkdir()

    def run(files: list[Path]) -> None:
        for file in files:
            file.rename(source / file.name)
        run_in(spark, _SETTINGS, lake, source, drain=False)

    tomorrow = datetime.now(UTC) + timedelta(days=1)
    with monkeypatch.context() as clock:
        # Rows of a machine whose clock is a day ahead.
        clock.setattr(receipts, "last_arrival", lambda *_: tomorrow)
        run(arriving[:3])
    run(arriving[3:])

    received = _received(lake)
    assert len(set(received)) == len(arriving), "each batch has a time of its own"
    assert received == sorted(received)
    assert received[0] > tomorrow
    assert received[-1] < tomorrow + timedelta(seconds=1)
    found = read_ledger(lake)
    assert [found.rows(kind) for kind in (RecordKind.UNACCOUNTED, RecordKind.SURPLUS)] == [0, 0]

    assert repair(OpenLake.of(lake, _SETTINGS, spark))
    cost = ATTRIBUTIONS.column_names.index("cost_micros")
    assert [row[cost] for row in read_table(lake, ATTRIBUTIONS)] == [100]


def _received(lake: Lake) -> list[datetime]:
    """By source, when its records were received."""
    source, time = (BRONZE_EVENTS.column_names.index(name) for name in ("source", "ingest_time"))
    rows = {(row[source], row[time].replace(tzinfo=UTC)) for row in read_table(lake, BRONZE_EVENTS)}
    times = dict(sorted((str(name).rpartition("/")[2], at) for name, at in rows))
    assert len(read_table(lake, SILVER_EVENTS)) == 4
    return list(times.values())


class _Times:
    """What a clock of a lake whose last row was received at ``last_us`` says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, last_us: int | None, **last: Any) -> None:
        at = None if last_us is None else datetime.fromtimestamp(last_us / 1_000_000, UTC)
        monkeypatch.setattr(receipts, "last_arrival", lambda *_: at)
        lake = open_lake("unused")
        monkeypatch.setattr(Lake, "newest_commit", lambda *_: 7)
        note = CommitNote(writer="w", batch=3, **last) if last else None
        self._clock = ReceiptClock(lake, BRONZE_EVENTS, note)

    def of(self, *planned_us: int, first: int = 4) -> list[int]:
        batches = enumerate(planned_us, first)
        return [self._clock.corrected(at_us, writer="w", batch_id=number) for number, at_us in batches]


def test_a_clock_that_goes_on_is_taken_at_its_word(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _Times(monkeypatch, 1_000_000).of(1_000_001, 2_000_000, 2_000_001) == [0, 0, 0]
    assert _Times(monkeypatch, None).of(5) == [0]


def test_a_clock_that_was_set_back_counts_by_the_microsecond_until_it_has_caught_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    times = _Times(monkeypatch, 1_000_000).of(1_000_000, 500_000, 1_000_002, 1_000_004, 1_000_004)
    assert times == [1_000_001, 1_000_002, 1_000_003, 0, 1_000_005]


def test_a_batch_that_is_in_the_table_keeps_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _Times(monkeypatch, 1_000_000, received_us=1_000_000).of(300, 400, first=3) == [1_000_000, 1_000_001]
    assert _Times(monkeypatch, 1_000_000, received_us=0).of(1_000_000, 2_000_000, first=3) == [0, 0]
