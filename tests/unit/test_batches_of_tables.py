"""The small file that says what a table's log says: silence costs nothing, and a cleaned log takes no batch away."""

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.config.durations import EPOCH, milliseconds
from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import ATTRIBUTIONS, BRONZE_EVENTS, SILVER_EVENTS, Table
from spark_jobs.credit.due import due_until
from spark_jobs.days.day import DaysSeen
from spark_jobs.days.evidence import take_snapshot
from spark_jobs.lake.batch import Batch, thinned
from spark_jobs.lake.batches import arrivals, keep_up, last_arrival, read_batches, save
from spark_jobs.lake.layout import Lake, commit_key
from spark_jobs.lake.notes import CommitNote
from spark_jobs.lake.open import open_lake
from spark_jobs.places import batches_key
from spark_jobs.queries.arrivals import spans_read
from spark_jobs.queries.deduplicate.query import QUERY as DEDUPLICATE
from spark_jobs.queries.notes import last_note, taken
from tests.support.written_lakes import NOON

_MINUTE = timedelta(minutes=1)
_SILENT_MINUTES = 10 * 60


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return open_lake(str(tmp_path / "lake"))


@pytest.fixture
def reads(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The keys that were read since the list was cleared."""
    found: list[str] = []
    read = lake.files.read

    def noted(key: str) -> bytes | None:
        found.append(key)
        return read(key)

    monkeypatch.setattr(lake.files, "read", noted)
    return found


def _commit(
    lake: Lake, table: Table, version: int, at: datetime, note: CommitNote | None, event_type: str | None = "click"
) -> None:
    """A commit at a time with one row that was received then."""
    info: dict[str, Any] = {"timestamp": milliseconds(at - EPOCH), "userMetadata": note.as_metadata() if note else None}
    lines: list[dict[str, Any]] = [{"commitInfo": info}]
    if event_type:
        time = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        ends = {"ingest_time": time}
        stats = json.dumps({"numRecords": 1, "minValues": ends, "maxValues": ends})
        partition = {"event_type": event_type, "event_date": at.date().isoformat()}
        lines.append({"add": {"path": f"{version}", "partitionValues": partition, "stats": stats}})
    text = "\n".join(json.dumps(line, separators=(",", ":")) for line in lines)
    lake.files.write(commit_key(table, version), text.encode())


def _note(query: str, batch: int, watermark: datetime, reached: int) -> CommitNote:
    offset = {"reservoirVersion": reached, "index": 3}
    ms = milliseconds(watermark - EPOCH)
    return CommitNote(writer=query, batch=batch, query=query, watermark_ms=ms, reached=[offset])


def _silent(lake: Lake) -> int:
    """Twenty batches, then heartbeats for ten hours, which attribute has read. Returns the newest version of silver."""
    for number in range(20):
        at = NOON + number * _MINUTE
        _commit(lake, BRONZE_EVENTS, number, at, _note("ingest", number, EPOCH, 0))
        _commit(lake, SILVER_EVENTS, number, at, _note("deduplicate", number, at - 10 * _MINUTE, number))
        _commit(lake, ATTRIBUTIONS, number, at, _note("attribute", number, at - 20 * _MINUTE, number), None)
    for number in range(20, 20 + _SILENT_MINUTES):
        at = NOON + number * _MINUTE
        _commit(lake, SILVER_EVENTS, number, at, CommitNote(writer="idle", batch=number), "heartbeat")
        keep_up(lake, SILVER_EVENTS)
    newest = 19 + _SILENT_MINUTES
    _commit(lake, ATTRIBUTIONS, 20, at, _note("attribute", 20, at, newest), None)
    return newest


def test_ten_silent_hours_cost_a_few_reads(lake: Lake, reads: list[str]) -> None:
    newest = _silent(lake)
    day = NOON.date()
    seen = DaysSeen(silver_version=19, first=day, last=day, dates=(day,), restatements_version=-1)
    reads.clear()
    look = take_snapshot(lake, Settings(), seen)
    assert look.event_dates == frozenset({day})
    assert len(reads) < 150
    reads.clear()
    assert due_until(lake, Settings()) is not None
    assert len(reads) < 60
    reads.clear()
    assert spans_read(lake, DEDUPLICATE, 19, until=newest) == []
    assert len(reads) < 60


def test_of_batches_that_reach_the_same_version_the_first_has_read_it(lake: Lake) -> None:
    _commit(lake, BRONZE_EVENTS, 0, NOON, _note("ingest", 0, EPOCH, 0))
    _commit(lake, SILVER_EVENTS, 0, NOON, _note("deduplicate", 0, EPOCH, 0))
    _commit(lake, SILVER_EVENTS, 1, NOON + _MINUTE, _note("deduplicate", 1, NOON, 0))
    (span,) = spans_read(lake, DEDUPLICATE, -1, until=1)
    assert span.watermark_ms == 0, "no watermark had passed what the first batch read"


def test_a_cleaned_log_takes_no_batch_away(lake: Lake) -> None:
    newest = _silent(lake)
    before = spans_read(lake, DEDUPLICATE, -1, until=newest)
    assert len(before) == 20
    assert before[7].received == (_us(NOON + 7 * _MINUTE), _us(NOON + 7 * _MINUTE) + 999)
    for table in (BRONZE_EVENTS, SILVER_EVENTS):
        read_batches(lake, table)
        cleaned = newest - 5 if table == SILVER_EVENTS else 19
        lake.files.delete([commit_key(table, version) for version in range(cleaned)])
    note = last_note(lake, "deduplicate")
    assert note == _note("deduplicate", 19, NOON + 9 * _MINUTE, 19)
    assert spans_read(lake, DEDUPLICATE, -1, until=newest) == before
    assert arrivals(lake, SILVER_EVENTS, 3, 4) == (_us(NOON + 3 * _MINUTE), _us(NOON + 4 * _MINUTE) + 999)
    found = taken(lake, DEDUPLICATE)
    assert found is not None
    assert (found.note, found.until) == (note, last_arrival(lake, BRONZE_EVENTS, 19))


def test_a_lake_of_before_reads_its_log_once(lake: Lake, reads: list[str]) -> None:
    newest = _silent(lake)
    lake.files.delete([batches_key(table.name) for table in (BRONZE_EVENTS, SILVER_EVENTS, ATTRIBUTIONS)])
    assert last_note(lake, "deduplicate") == _note("deduplicate", 19, NOON + 9 * _MINUTE, 19)
    assert len(reads) > _SILENT_MINUTES
    reads.clear()
    assert last_note(lake, "deduplicate") is not None
    assert len(reads) < 10
    assert len(spans_read(lake, DEDUPLICATE, 9, until=newest)) == 10


def test_a_table_that_was_made_again_has_none_of_the_batches_of_the_one_before(lake: Lake) -> None:
    _silent(lake)
    lake.files.delete_folder(SILVER_EVENTS.path)
    assert last_note(lake, "deduplicate") is None
    for number in range(20 + _SILENT_MINUTES):
        _commit(lake, SILVER_EVENTS, number, NOON + (7 + number) * _MINUTE, None, "heartbeat")
    assert last_note(lake, "deduplicate") is None


@pytest.mark.parametrize("end", [0, 59, 100, 137, 199])
def test_where_a_reader_stopped_stays_exact_however_old_it_gets(end: int, lake: Lake) -> None:
    every, stopped_at, newest = timedelta(seconds=10), 200, 1200

    def write(first: int, last: int) -> None:
        for number in range(first, last):
            at = NOON + number * every
            _commit(lake, SILVER_EVENTS, number, at, _note("deduplicate", number, at, number))

    write(0, stopped_at)
    save(lake, SILVER_EVENTS)
    write(stopped_at, stopped_at + 5)
    save(lake, SILVER_EVENTS, [end])
    for first in range(stopped_at + 5, newest, 199):
        write(first, min(first + 199, newest))
        save(lake, SILVER_EVENTS, [end])
        lake.files.delete([commit_key(SILVER_EVENTS, version) for version in range(first)])
    found = read_batches(lake, SILVER_EVENTS)
    assert len(found.batches) < 100
    assert found.last_arrival(end) == _us(NOON + end * every) + 999
    assert found.last_arrival(end + 1) is None, "it was summed up with others"


def test_rows_that_came_in_earlier_than_they_were_written_are_not_told_apart_by_time(lake: Lake) -> None:
    for number, minutes in enumerate((0, 1, 3, 2, 4)):
        _commit(lake, SILVER_EVENTS, number, NOON + minutes * _MINUTE, None)
    found = read_batches(lake, SILVER_EVENTS)
    known = [found.last_arrival(version) for version in range(5)]
    assert known == [None if minutes is None else _us(NOON + minutes * _MINUTE) + 999 for minutes in (0, 1, None, 3, 4)]


def test_a_damaged_file_is_made_again(lake: Lake) -> None:
    _silent(lake)
    lake.files.write(batches_key(SILVER_EVENTS.name), b'{"version": 12')
    assert last_note(lake, "deduplicate") == _note("deduplicate", 19, NOON + 9 * _MINUTE, 19)


def test_old_batches_are_summed_up_and_claim_no_less() -> None:
    batches: list[Batch] = []
    every, count = timedelta(minutes=30), 3 * 365 * 48
    for number in range(count):
        at = NOON + number * every
        own = Batch(
            first_version=number,
            version=number,
            at_ms=milliseconds(at - EPOCH),
            note=_note("deduplicate", number, at, number),
            first_us=_us(at),
            last_us=_us(at) + 999,
        )
        batches.append(own)
        if number % 5000 == 0 or number == count - 1:
            batches = list(thinned(batches))
    assert len(batches) < 1_700
    assert [one.first_version for one in batches[1:]] == [one.version + 1 for one in batches[:-1]]
    assert batches[0].first_version == 0
    assert batches[-1].version == count - 1
    for one in batches:
        begin, end = NOON + one.first_version * every, NOON + one.version * every
        assert (one.first_us, one.last_us) == (_us(begin), _us(end) + 999)
        assert one.note is not None
        assert one.note.watermark_ms == milliseconds(end - EPOCH)


def _us(time: datetime) -> int:
    return milliseconds(time - EPOCH) * 1000
