"""The ledger over lakes that are written by hand, each commit as a query writes it."""

import json
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spark_jobs.cli.ledger import ledger
from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import (
    ATTRIBUTIONS,
    BRONZE_EVENTS,
    LATE_EVENTS,
    RESTATEMENTS,
    SESSIONS,
    SILVER_EVENTS,
    USER_STATUS,
)
from spark_jobs.errors import LakeError
from spark_jobs.lake.notes import CommitNote
from spark_jobs.lake.open import open_lake
from spark_jobs.ledger import merging
from spark_jobs.ledger.advance import _Step, advance
from spark_jobs.ledger.ledger_files import rows_of
from spark_jobs.ledger.model import LATE_KINDS, LEDGERS, RECORDS, Ledger, RecordKind, ledger_key
from spark_jobs.ledger.unread import UNREAD
from spark_jobs.places import REPAIR
from tests.support.written_lakes import NOON, Record, WrittenLake, at

_DELAY = timedelta(hours=3)
_DELAY_MIN = 180
_REPAIR = CommitNote(writer=REPAIR, batch=1)


@pytest.fixture
def written(tmp_path: Path) -> WrittenLake:
    return WrittenLake(open_lake(str(tmp_path / "lake")))


def _ledger(written: WrittenLake, own: Settings | None = None) -> Ledger:
    *_, last = advance(own or Settings(), written.lake, lambda: datetime.now(UTC))
    return last


def _event(key: str, minutes: float, batch: float, kind: str = "impression", **more: Any) -> Record:
    return {
        "event_type": kind,
        "event_id": key,
        "event_time": at(minutes),
        "ingest_time": at(batch),
        "event_date": at(minutes).date(),
        "verdict": "ok",
        "user_id": "u1",
        "source_name": "ads",
        "source": f"t/0/{key}",
        **more,
    }


def _arrive(
    written: WrittenLake,
    records: Sequence[Record],
    kept: Sequence[Record],
    version: int,
    watermark: float | None = None,
) -> None:
    """A batch of ingest, and the batch of deduplicate that reads it."""
    written.batch(BRONZE_EVENTS, "ingest", records)
    written.batch(SILVER_EVENTS, "deduplicate", kept, reached=version, watermark=watermark)


def test_of_two_copies_one_is_kept_and_one_is_a_duplicate(written: WrittenLake) -> None:
    a, b = _event("a", 0, 1), _event("b", 0, 1)
    _arrive(written, [a, b, a], [a, b], 0)
    _arrive(written, [_event("a", 0, 2)], [], 1)
    ledger = _ledger(written)
    assert ledger.balances
    assert (ledger.rows(RecordKind.OK), ledger.rows(RecordKind.KEPT), ledger.rows(RecordKind.DUPLICATE)) == (4, 2, 2)


def test_the_events_of_one_record_count_as_one(written: WrittenLake) -> None:
    """Of a list, of lists in it, and of sources that take a record of another one, too."""
    places = (
        "t/0/1",
        "t/0/2[0]",
        "t/0/2[1]",
        "t/0/2[1]+c",
        "t/0/3[0][0]",
        "t/0/3[0][1]",
        "t/0/3[1][0]",
        "t/0/4+c",
        "t/0/4",
    )
    events = [_event(str(number), 0, 1, source=place) for number, place in enumerate(places)]
    _arrive(written, events, events, 0)
    ledger = _ledger(written)
    assert ledger.balances
    assert (ledger.received, ledger.rows(RecordKind.FURTHER), ledger.records) == (9, 5, 4)


def test_a_good_record_that_is_nowhere_is_unaccounted(written: WrittenLake) -> None:
    a, b = _event("a", 0, 1), _event("b", 0, 1)
    _arrive(written, [a, b], [a], 0)
    ledger = _ledger(written)
    assert not ledger.balances
    assert [(one.account, one.kind, one.rows) for one in ledger.alarms] == [(RECORDS, RecordKind.UNACCOUNTED, 1)]


@pytest.mark.parametrize("in_steps", [False, True], ids=["in one update", "in three updates"])
def test_a_record_is_held_back_until_silver_has_read_it(written: WrittenLake, *, in_steps: bool) -> None:
    def look(held: int, kept: int, duplicates: int) -> None:
        if in_steps or not held:
            found = _ledger(written)
            assert found.balances, found.wrong
            assert (found.rows(RecordKind.HELD), found.kept, found.duplicates) == (held, kept, duplicates)

    before = _event("late for nobody", 500, 0)
    _arrive(written, [before], [before], 0)
    a, ahead, copy = _event("a", 0, 1), _event("ahead", 300, 1), _event("ahead", 300, 2)
    written.batch(BRONZE_EVENTS, "ingest", [a, ahead])
    written.batch(SILVER_EVENTS, "deduplicate", [a], reached=1, settled=0, frontier=0)
    look(held=1, kept=2, duplicates=0)
    written.batch(BRONZE_EVENTS, "ingest", [copy])
    written.batch(SILVER_EVENTS, "deduplicate", [], reached=2, settled=0, frontier=200, watermark=-180)
    look(held=2, kept=2, duplicates=0)
    written.batch(SILVER_EVENTS, "deduplicate", [ahead], reached=2, watermark=20)
    look(held=0, kept=3, duplicates=1)


def test_a_row_of_silver_without_a_record_is_surplus(written: WrittenLake) -> None:
    _arrive(written, [_event("a", 0, 1)], [_event("a", 0, 1), _event("b", 0, 1)], 0)
    assert [(one.kind, one.rows) for one in _ledger(written).alarms] == [(RecordKind.SURPLUS, 1)]


def test_compaction_and_repairs_add_nothing(written: WrittenLake) -> None:
    a = _event("a", 0, 1)
    written.batch(BRONZE_EVENTS, "ingest", [a])
    files = written.batch(SILVER_EVENTS, "deduplicate", [a], reached=0)
    written.commit(SILVER_EVENTS, [a], removed=files, moves=True)
    ledger = _ledger(written)
    assert (ledger.balances, ledger.rows(RecordKind.KEPT), ledger.silver) == (True, 1, 1)


def test_what_others_delete_and_add_is_unaccounted_and_surplus(written: WrittenLake) -> None:
    a, b, c = (_event(key, 0, 1) for key in "abc")
    written.batch(BRONZE_EVENTS, "ingest", [a, b])
    files = written.batch(SILVER_EVENTS, "deduplicate", [a, b], reached=0)
    sessions = written.batch(SESSIONS, "sessionize", [_session(a, b)], reached=0)
    assert _ledger(written).balances
    written.commit(SILVER_EVENTS, [a, c], removed=files)
    written.commit(SESSIONS, [], removed=sessions)
    ledger = _ledger(written)
    assert {(one.account, one.kind, one.rows) for one in ledger.alarms} == {
        (RECORDS, RecordKind.UNACCOUNTED, 1),
        (RECORDS, RecordKind.SURPLUS, 1),
        ("sessionize", RecordKind.UNACCOUNTED, 2),
    }
    assert ledger.ok_difference == 0
    written.commit(BRONZE_EVENTS, [a], None)
    written.batch(SILVER_EVENTS, "deduplicate", [], reached=1)
    (added,) = (one for one in _ledger(written).alarms if one.account == BRONZE_EVENTS.name)
    assert (added.kind, added.rows) == (RecordKind.ADDED, 1)


def test_a_file_of_bronze_that_is_written_again_without_one_of_its_rows_has_one_removed(written: WrittenLake) -> None:
    a, b, c = (_event(key, 0, 1) for key in "abc")
    files = written.batch(BRONZE_EVENTS, "ingest", [a, b, c])
    written.batch(SILVER_EVENTS, "deduplicate", [a, b, c], reached=0)
    assert _ledger(written).balances
    written.commit(BRONZE_EVENTS, [a, c], removed=files)
    written.batch(SILVER_EVENTS, "deduplicate", [], reached=1)
    (removed,) = (one for one in _ledger(written).alarms if one.account == BRONZE_EVENTS.name)
    assert (removed.kind, removed.rows) == (RecordKind.REMOVED, 1)


def test_a_requeued_record_leaves_quarantine_for_its_hour(written: WrittenLake) -> None:
    bad = _event("a", 0, 1, verdict="missing_user_id", event_time=None)
    other = _event("b", 0, 1, verdict="invalid_event_time", event_time=None)
    _arrive(written, [bad, other], [], 0)
    assert _ledger(written).quarantined == {"invalid_event_time": 1, "missing_user_id": 1}
    again = {**_event("a", 0, 2), "requeued_from": at(1), "source": bad["source"]}
    written.commit(BRONZE_EVENTS, [again], CommitNote(writer="requeue after 0", batch=0))
    written.batch(SILVER_EVENTS, "deduplicate", [again], reached=1)
    ledger = _ledger(written)
    assert ledger.balances
    assert ledger.quarantined == {"invalid_event_time": 1}
    assert (ledger.rows(RecordKind.RECEIVED), ledger.rows(RecordKind.OK), ledger.rows(RecordKind.REQUEUED)) == (2, 1, 1)
    received = {row.hour: row.rows for row in rows_of(written.lake, ledger) if row.kind == RecordKind.RECEIVED}
    assert received == {None: 1, int(NOON.timestamp()) // 3600: 1}


def test_what_is_late_has_the_fate_that_repairs_tell(written: WrittenLake) -> None:
    """Five late records: a repair expires one, brings one in, leaves two waiting, and finds that one is a copy."""
    late = {name: _event(name, -300, 2) for name in ("expired", "repaired", "frozen", "slow", "copy")}
    _arrive(written, [_event("a", 0, 1)], [_event("a", 0, 1)], 0)
    _arrive(written, [*late.values(), late["repaired"]], [], 1, watermark=-_DELAY_MIN)
    ledger = _ledger(written)
    assert (ledger.balances, ledger.rows(RecordKind.LATE_AWAITING), ledger.rows(RecordKind.DUPLICATE)) == (True, 6, 0)

    found = [{**late[name], "is_expired": name == "expired", "repair": 1} for name in late if name != "copy"]
    written.commit(LATE_EVENTS, found, _REPAIR)
    written.repair(1, 1, [late["slow"], late["frozen"]])
    ledger = _ledger(written)
    fates = {
        kind: ledger.rows(kind)
        for kind in RecordKind
        if ledger.rows(kind) and (kind.startswith("late") or kind == "duplicate")
    }
    # Both copies of what was repaired share its fate.
    assert fates == {
        RecordKind.LATE_EXPIRED: 1,
        RecordKind.LATE_REPAIRED: 2,
        RecordKind.LATE_PENDING: 2,
        RecordKind.DUPLICATE: 1,
    }
    assert ledger.balances

    told = _frozen(late["frozen"], repair=2)
    # That a mark would change a row that is too old says nothing of the late event.
    marked = {**told, "event_id": "repaired", "cause": "invalid_traffic"}
    written.commit(RESTATEMENTS, [told, marked], CommitNote(writer=f"{REPAIR} sessions", batch=2))
    written.repair(2, 1, [late["slow"]])
    ledger = _ledger(written)
    assert (ledger.rows(RecordKind.LATE_FROZEN), ledger.rows(RecordKind.LATE_PENDING), ledger.late) == (1, 1, 5)
    written.repair(3, -1)
    assert _ledger(written).rows(RecordKind.LATE_PENDING) == 1, "that one has changed rows for another reason"
    written.repair(4, 1)
    ledger = _ledger(written)
    assert (ledger.rows(RecordKind.LATE_REPAIRED), ledger.rows(RecordKind.LATE_PENDING), ledger.balances) == (
        3,
        0,
        True,
    )


def test_a_late_record_whose_later_copy_was_kept_is_a_duplicate(written: WrittenLake) -> None:
    _arrive(written, [_event("a", 0, 1)], [_event("a", 0, 1)], 0)
    _arrive(written, [_event("b", -190, 2)], [], 1, watermark=-_DELAY_MIN)
    assert _ledger(written).rows(RecordKind.LATE_AWAITING) == 1
    again = _event("b", -15, 3)
    _arrive(written, [again], [again], 2, watermark=-_DELAY_MIN)
    ledger = _ledger(written)
    assert (ledger.rows(RecordKind.LATE_AWAITING), ledger.rows(RecordKind.DUPLICATE), ledger.rows(RecordKind.KEPT)) == (
        0,
        1,
        2,
    )


def _frozen(cause: Record, **more: Any) -> Record:
    """A row of ``gold/restatements``: what ``cause`` would have changed is too old."""
    event = {name: cause[name] for name in ("event_type", "event_id")}
    return {**event, "received_at": cause["ingest_time"], "outcome": "frozen", "cause": "late_click", **more}


def _fates(ledger: Ledger) -> dict[RecordKind, int]:
    """What became of good records; those that were late by what repairs found."""
    assert ledger.balances, ledger.alarms
    kinds = (RecordKind.KEPT, RecordKind.DUPLICATE, *LATE_KINDS)
    return {kind: rows for kind in kinds if (rows := ledger.rows(kind))}


_MICROSECOND = 1 / 60_000_000
_FOREVER = Settings.model_validate({"deduplicate": {"mode": "forever"}})


@pytest.mark.parametrize("in_steps", [False, True], ids=["one update", "an update for each batch"])
@pytest.mark.parametrize(
    ("minutes", "watermark", "own", "fate"),
    [
        pytest.param(_DELAY_MIN, -60, None, RecordKind.DUPLICATE, id="the delay apart"),
        pytest.param(_DELAY_MIN + _MICROSECOND, -60, None, RecordKind.LATE_AWAITING, id="a microsecond more"),
        pytest.param(-_DELAY_MIN, 0, None, RecordKind.DUPLICATE, id="late, the delay before"),
        pytest.param(-_DELAY_MIN - _MICROSECOND, 0, None, RecordKind.LATE_AWAITING, id="late, a microsecond more"),
        pytest.param(24 * 60, -60, None, RecordKind.LATE_AWAITING, id="a day later, and still remembered"),
        pytest.param(100_000, -60, _FOREVER, RecordKind.DUPLICATE, id="forever"),
    ],
)
def test_a_record_that_silver_lacks_is_a_copy_of_what_lies_within_the_delay(
    minutes: float, watermark: float, own: Settings | None, fate: RecordKind, written: WrittenLake, *, in_steps: bool
) -> None:
    first = _event("a", 0, 1)
    _arrive(written, [first], [first], 0)
    if in_steps:
        _ledger(written, own)
    _arrive(written, [_event("a", minutes, 2)], [], 1, watermark=watermark)
    assert _fates(_ledger(written, own)) == {RecordKind.KEPT: 1, fate: 1}


def test_a_copy_on_the_other_side_of_midnight_is_a_duplicate(written: WrittenLake) -> None:
    midnight = 12 * 60
    first, copy, late_copy = (_event("a", midnight + minutes, 1) for minutes in (10, 60, -170))
    _arrive(written, [first, copy, late_copy], [first], 0)
    assert _fates(_ledger(written)) == {RecordKind.KEPT: 1, RecordKind.DUPLICATE: 2}


def test_each_use_of_an_id_is_told_from_the_others_over_many_updates(written: WrittenLake) -> None:
    uses = [_event("a", day * 24 * 60, day) for day in range(4)]
    for day, use in enumerate(uses):
        _arrive(written, [use], [use], day, watermark=(day - 1) * 24 * 60)
        _ledger(written)
    near, between = _event("a", 60, 4), _event("a", 12 * 60, 4)
    _arrive(written, [near, between], [], 4, watermark=3 * 24 * 60)
    assert _fates(_ledger(written)) == {RecordKind.KEPT: 4, RecordKind.DUPLICATE: 1, RecordKind.LATE_AWAITING: 1}


def test_an_id_that_is_forgotten_in_steps_is_known_until_the_step_is_over(written: WrittenLake) -> None:
    """The watermark has passed what expires with the first event, but not so far that its id is forgotten."""
    first, again = _event("a", 0, 1), _event("a", 2 * _DELAY_MIN, 3)
    _arrive(written, [first], [first], 0)
    _arrive(written, [], [], 1, watermark=_DELAY_MIN + 1)
    _read_by_all(written, 1, _DELAY_MIN + 1)
    _ledger(written)
    _arrive(written, [again], [], 2, watermark=_DELAY_MIN + 1)
    assert _fates(_ledger(written)) == {RecordKind.KEPT: 1, RecordKind.LATE_AWAITING: 1}


def test_a_late_record_is_no_copy_of_a_later_use_of_its_id(written: WrittenLake) -> None:
    _arrive(written, [_event("a", -300, 1)], [], 0, watermark=-_DELAY_MIN)
    _ledger(written)
    again = _event("a", 0, 2)
    _arrive(written, [again], [again], 1, watermark=-_DELAY_MIN)
    assert _fates(_ledger(written)) == {RecordKind.KEPT: 1, RecordKind.LATE_AWAITING: 1}


@pytest.mark.parametrize("in_steps", [False, True], ids=["one update", "an update for each repair"])
def test_the_late_uses_of_an_id_have_each_its_own_fate(written: WrittenLake, *, in_steps: bool) -> None:
    """One use after the other: too old, brought in, waiting, frozen, a copy of an event that was kept long ago."""
    expired, repaired, slow, frozen, copy = (_event("a", -1500 + 300 * use, 10 + use) for use in range(5))
    _arrive(written, [expired, repaired, _event("a", -1100, 20), slow, frozen, copy], [], 0, watermark=0)
    found = [{**one, "is_expired": one is expired, "repair": 1} for one in (expired, repaired, slow, frozen)]
    written.commit(LATE_EVENTS, found, _REPAIR)
    written.repair(1, 0, [slow, frozen])
    due = {RecordKind.LATE_EXPIRED: 1, RecordKind.LATE_REPAIRED: 2, RecordKind.DUPLICATE: 1}
    if in_steps:
        assert _fates(_ledger(written)) == {**due, RecordKind.LATE_PENDING: 2}
    written.commit(RESTATEMENTS, [_frozen(frozen, repair=2)], CommitNote(writer=f"{REPAIR} sessions", batch=2))
    written.repair(2, 0, [slow])
    assert _fates(_ledger(written)) == {**due, RecordKind.LATE_PENDING: 1, RecordKind.LATE_FROZEN: 1}


def test_late_events_of_which_older_updates_kept_only_the_ids_explain_every_use(written: WrittenLake) -> None:
    late = _event("a", -300, 1)
    _arrive(written, [late], [], 0, watermark=0)
    written.commit(LATE_EVENTS, [{**late, "is_expired": False, "repair": 1}], _REPAIR)
    written.repair(1, 0, [late])
    ledger = _ledger(written)
    for key in ledger.found_late:
        rows = pq.read_table(pa.BufferReader(written.lake.files.read(key) or b""))
        sink = pa.BufferOutputStream()
        pq.write_table(rows.select(["hash", "is_late", "is_expired", "is_frozen"]), sink)
        written.lake.files.write(key, sink.getvalue().to_pybytes())
    _arrive(written, [_event("a", -900, 2)], [], 1, watermark=0)
    written.commit(RESTATEMENTS, [_frozen(late, repair=2)], CommitNote(writer=f"{REPAIR} sessions", batch=2))
    written.repair(2, 1)
    assert _fates(_ledger(written)) == {RecordKind.LATE_FROZEN: 2}


def test_keys_are_remembered_for_as_long_as_a_copy_can_be_on_time(written: WrittenLake) -> None:
    _arrive(written, [_event("a", 0, 1)], [_event("a", 0, 1)], 0)
    _arrive(written, [_event("b", 2 * _DELAY_MIN, 2)], [_event("b", 2 * _DELAY_MIN, 2)], 1, watermark=-_DELAY_MIN)
    _read_by_all(written, 1, -_DELAY_MIN)
    assert len(_ledger(written).parts) == 1
    c = _event("c", 2 * _DELAY_MIN + 1, 3)
    _arrive(written, [c], [c], 2, watermark=_DELAY_MIN)
    _read_by_all(written, 2, _DELAY_MIN)
    ledger = _ledger(written)
    assert [part.first for part in ledger.parts] == [0, 2], "the newest event of the first part is b, not a"
    d = _event("d", 9 * _DELAY_MIN, 4)
    _arrive(written, [d], [d], 3, watermark=4 * _DELAY_MIN)
    _read_by_all(written, 3, 4 * _DELAY_MIN)
    assert [part.first for part in _ledger(written).parts] == [3]


def test_where_nothing_is_ever_forgotten_neither_does_the_ledger(written: WrittenLake) -> None:
    _arrive(written, [_event("a", 0, 1)], [_event("a", 0, 1)], 0)
    _read_by_all(written, 0, 0)
    assert [part.until_us for part in _ledger(written, _FOREVER).parts] == [None]
    far = _event("b", 100_000, 2)
    _arrive(written, [far, _event("a", 0, 2)], [far], 1)
    _read_by_all(written, 1, 0)
    ledger = _ledger(written, _FOREVER)
    assert (ledger.balances, ledger.rows(RecordKind.DUPLICATE), len(ledger.parts)) == (True, 1, 2)


def _read_by_all(written: WrittenLake, silver: int, watermark: float) -> None:
    for table, query in ((ATTRIBUTIONS, "attribute"), (SESSIONS, "sessionize")):
        written.batch(table, query, [], reached=silver, watermark=watermark)


def _session(*events: Record) -> Record:
    told = [{name: event[name] for name in ("event_time", "event_type", "event_id")} for event in events]
    return {"session_id": "s", "events": told, "event_count": len(told), "event_date": NOON.date()}


def test_an_event_is_pending_until_the_row_with_it_is_there(written: WrittenLake) -> None:
    a, b = _event("a", 0, 1), _event("b", 2, 1)
    _arrive(written, [a, b], [a, b], 0)
    assert _ledger(written).accounts == [], "no query has a table yet"
    written.batch(SESSIONS, "sessionize", [], reached=0)
    assert _ledger(written).rows(RecordKind.PENDING, account="sessionize") == 2
    _arrive(written, [_event("c", 60, 2)], [_event("c", 60, 2)], 1)
    ledger = _ledger(written)
    assert ledger.rows(RecordKind.READ, account="sessionize") == 2
    assert ledger.rows(RecordKind.PENDING, account="sessionize") == 3, "what is not read yet is pending too"
    written.batch(SESSIONS, "sessionize", [_session(a, b)], reached=1, watermark=50)
    ledger = _ledger(written)
    assert (ledger.rows(RecordKind.PENDING, account="sessionize"), ledger.balances) == (1, True)


def test_an_event_that_the_watermark_has_passed_is_late_or_lost(written: WrittenLake) -> None:
    """``a`` is read on time and never written; ``b`` is read behind the watermark."""
    a, b, c = _event("a", 0, 1), _event("b", 0, 2, user_id="u2"), _event("c", 100, 3, user_id="u3")
    _arrive(written, [a], [a], 0)
    written.batch(SESSIONS, "sessionize", [], reached=0)
    _arrive(written, [b], [b], 1)
    written.batch(SESSIONS, "sessionize", [], reached=1, watermark=30)
    _arrive(written, [c], [c], 2)
    written.batch(SESSIONS, "sessionize", [], reached=2, watermark=90)
    ledger = _ledger(written)
    kinds = (RecordKind.LATE, RecordKind.UNACCOUNTED, RecordKind.PENDING)
    assert [ledger.rows(kind, account="sessionize") for kind in kinds] == [1, 1, 1]
    assert not ledger.balances


def test_an_event_waits_for_the_end_of_its_users_session(written: WrittenLake) -> None:
    events = [_event(f"e{minutes}", minutes, 1) for minutes in range(0, 60, 4)]
    _arrive(written, events, events, 0)
    written.batch(SESSIONS, "sessionize", [], reached=0)
    last = _event("last", 59, 2)
    _arrive(written, [last], [last], 1)
    written.batch(SESSIONS, "sessionize", [], reached=1, watermark=50)
    ledger = _ledger(written)
    assert (ledger.rows(RecordKind.PENDING, account="sessionize"), ledger.balances) == (len(events) + 1, True)


def test_a_row_has_the_use_of_an_id_that_it_names(written: WrittenLake) -> None:
    uses = [_event("a", minutes, 1, kind) for kind in ("impression", "click") for minutes in (0, 600)]
    _arrive(written, uses, uses, 0)
    first = {"impression_id": "a", "impression_time": at(0)}
    written.batch(ATTRIBUTIONS, "attribute", [first], reached=0)
    written.batch(SESSIONS, "sessionize", [_session(uses[0]), _session(uses[2])], reached=0)
    ledger = _ledger(written)
    assert ledger.balances
    assert [ledger.rows(RecordKind.PENDING, account=account) for account in ("attribute", "sessionize")] == [3, 2]
    _arrive(written, [], [], 1)
    written.batch(ATTRIBUTIONS, "attribute", [], reached=1, watermark=300)
    written.batch(SESSIONS, "sessionize", [_session(uses[0])], reached=1, watermark=300)
    assert {(one.account, one.kind, one.rows) for one in _ledger(written).alarms} == {
        ("attribute", RecordKind.UNACCOUNTED, 1),
        ("sessionize", RecordKind.SURPLUS, 1),
    }


def test_a_row_of_gold_with_an_event_that_was_never_read_is_surplus(written: WrittenLake) -> None:
    a = _event("a", 0, 1)
    _arrive(written, [a], [a], 0)
    written.batch(SESSIONS, "sessionize", [_session(a, _event("stranger", 1, 1))], reached=0, watermark=30)
    assert [(one.account, one.kind, one.rows) for one in _ledger(written).alarms] == [
        ("sessionize", RecordKind.SURPLUS, 1)
    ]


def test_events_without_a_user_are_in_no_session(written: WrittenLake) -> None:
    a = _event("a", 0, 1, user_id=None)
    _arrive(written, [a], [a], 0)
    written.batch(SESSIONS, "sessionize", [], reached=0)
    ledger = _ledger(written)
    assert [
        ledger.rows(kind, account="sessionize") for kind in (RecordKind.USERLESS, RecordKind.READ, RecordKind.PENDING)
    ] == [1, 0, 0]


def test_conversions_are_kept_and_are_no_business_of_the_join_and_of_sessions(written: WrittenLake) -> None:
    events = [
        _event("p", 0, 1, "conversion"),
        _event("p", 0, 1, "click"),
        _event("q", 0, 1, "conversion", user_id=None),
    ]
    _arrive(written, [*events, events[0]], events, 0)
    pair = {"impression_id": "nobody", "click_id": "p", "click_time": at(0)}
    written.batch(ATTRIBUTIONS, "attribute", [pair], reached=0)
    written.batch(SESSIONS, "sessionize", [_session(events[1])], reached=0)
    written.batch(USER_STATUS, "user_status", [], reached=0)
    ledger = _ledger(written)
    assert (ledger.balances, ledger.rows(RecordKind.KEPT), ledger.rows(RecordKind.DUPLICATE)) == (True, 3, 1)
    counts = {
        account: [
            ledger.rows(kind, account=account)
            for kind in (RecordKind.READ, RecordKind.USERLESS, RecordKind.PENDING, RecordKind.LATE)
        ]
        for account in ledger.accounts
    }
    assert counts == {"attribute": [1, 0, 0, 0], "sessionize": [1, 0, 0, 0], "user_status": [3, 0, 3, 0]}


def test_an_impression_may_be_in_several_rows(written: WrittenLake) -> None:
    i = _event("i", 0, 1)
    clicks = [_event(f"k{number}", number, 1, "click", impression_id="i") for number in (1, 2)]
    _arrive(written, [i, *clicks], [i, *clicks], 0)
    rows = [
        {"impression_id": "i", "impression_time": at(0), "click_id": c["event_id"], "click_time": c["event_time"]}
        for c in clicks
    ]
    for row in rows:
        written.batch(ATTRIBUTIONS, "attribute", [row], reached=0)
    ledger = _ledger(written)
    assert (
        ledger.rows(RecordKind.READ, account="attribute"),
        ledger.rows(RecordKind.PENDING, account="attribute"),
    ) == (3, 0)
    assert ledger.balances


@pytest.mark.parametrize(("join", "read"), [("full_outer", 2), ("left_outer", 1), ("right_outer", 1), ("inner", 0)])
def test_only_sides_that_the_join_must_emit_are_followed(join: str, read: int, written: WrittenLake) -> None:
    events = [_event("i", 0, 1), _event("k", 1, 1, "click")]
    _arrive(written, events, events, 0)
    written.batch(ATTRIBUTIONS, "attribute", [], reached=0)
    ledger = _ledger(written, Settings.model_validate({"attribute": {"join": join}}))
    assert ledger.rows(RecordKind.READ, account="attribute") == read


def test_a_batch_that_has_read_more_than_the_update_is_left_for_the_next(written: WrittenLake) -> None:
    a, b = _event("a", 0, 1), _event("b", 1, 2)
    _arrive(written, [a], [a], 0)
    _arrive(written, [b], [b], 1)
    written.batch(SESSIONS, "sessionize", [], reached=0)
    written.batch(SESSIONS, "sessionize", [_session(a, b)], reached=1, watermark=30)
    first, second = advance(Settings(), written.lake, lambda: NOON, rows_at_once=1)
    assert (first.silver, first.positions["sessionize"].version) == (0, 0)
    assert (second.silver, second.positions["sessionize"].version, second.balances) == (1, 1, True)


def test_late_for_measure_is_what_lies_behind_the_watermark_of_the_batch_before(written: WrittenLake) -> None:
    for version, (minutes, watermark) in enumerate([(0, None), (60, -10), (-5, 50), (-5.1, 55)]):
        row = _event(f"e{version}", minutes, version)
        _arrive(written, [row], [row], version)
        written.batch(USER_STATUS, "user_status", [], reached=version, watermark=watermark)
    ledger = _ledger(written)
    # The third was read when the batch before had left -10, the fourth when it had left 50.
    assert (
        ledger.rows(RecordKind.READ, account="user_status"),
        ledger.rows(RecordKind.LATE, account="user_status"),
    ) == (
        4,
        1,
    )
    assert ledger.rows(RecordKind.PENDING, account="user_status") == 1


@pytest.mark.parametrize("in_steps", [False, True], ids=["one update", "an update for each batch"])
def test_a_batch_that_reaches_no_further_counts_with_its_watermark(written: WrittenLake, *, in_steps: bool) -> None:
    """Whether the ledger is updated between it and the batch that reads the next event, or not."""
    for version, reached, watermark in ((0, 0, None), (1, 0, 50), (2, 1, 60)):
        rows = [_event(f"e{version}", 40 if version else 0, version)] if version != 1 else []
        if rows:
            _arrive(written, rows, rows, reached)
        written.batch(USER_STATUS, "user_status", [], reached=reached, watermark=watermark)
        if in_steps:
            _ledger(written)
    ledger = _ledger(written)
    assert ledger.rows(RecordKind.READ, account="user_status") == 2
    assert ledger.rows(RecordKind.LATE, account="user_status") == 1
    assert ledger.rows(RecordKind.PENDING, account="user_status") == 0


def _loaded(written: WrittenLake, monkeypatch: pytest.MonkeyPatch) -> int:
    """Updates the ledger and returns how many events it loaded for its queries."""
    counted = []
    load = _Step._load_events

    def count(own: _Step, *parts_and_taken: Any) -> None:
        load(own, *parts_and_taken)
        counted.append(own._desk.one("SELECT count(*) FROM event"))

    with monkeypatch.context() as patched:
        patched.setattr(_Step, "_load_events", count)
        ledger = _ledger(written)
    assert _is_right(ledger)
    return sum(counted)


def _is_right(ledger: Ledger) -> bool:
    """Whether no record is lost; `attribute` and `sessionize` write no row here."""
    lost = [one for one in ledger.alarms if one.account not in ("attribute", "sessionize")]
    return (lost, ledger.ok_difference, ledger.received_difference) == ([], 0, 0)


def _a_day(written: WrittenLake, day: int) -> None:
    minutes = day * 1440.0
    events = [_event(f"e{day}.{number}", minutes + number, 1) for number in range(10)]
    _arrive(written, events, events, day, watermark=minutes - _DELAY_MIN)
    _read_by_all(written, day, minutes - _DELAY_MIN)


def test_a_query_that_nobody_runs_costs_nothing(written: WrittenLake, monkeypatch: pytest.MonkeyPatch) -> None:
    written.batch(USER_STATUS, "none", [])  # `adloom run --no-measure` creates the table
    loaded = []
    for day in range(6):
        _a_day(written, day)
        loaded.append(_loaded(written, monkeypatch))
    assert max(loaded) <= 20, loaded
    assert "user_status" not in _ledger(written).accounts


def test_what_waits_for_a_query_that_stands_still_is_counted_without_being_loaded(
    written: WrittenLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = []
    for day in range(12):
        _a_day(written, day)
        if day == 0:
            written.batch(USER_STATUS, "user_status", [], reached=day, watermark=-_DELAY_MIN)
        loaded.append(_loaded(written, monkeypatch))
    assert max(loaded) <= 90, "not the events of more than eight updates, which are merged"
    assert max(loaded[:7]) <= 20
    _a_day(written, 12)
    ledger = _ledger(written)
    assert ledger.rows(RecordKind.READ, account="user_status") == 10
    assert ledger.rows(RecordKind.PENDING, account="user_status") == 120
    assert len(ledger.parts) < 8, "parts are merged"
    # It goes on, and what it reads is found in merged parts.
    written.batch(USER_STATUS, "user_status", [], reached=10, watermark=10 * 1440 - _DELAY_MIN)
    ledger = _ledger(written)
    assert ledger.rows(RecordKind.READ, account="user_status") == 110
    assert ledger.rows(RecordKind.PENDING, account="user_status") == 30
    written.batch(USER_STATUS, "user_status", [], reached=12, watermark=13 * 1440)
    assert _ledger(written).rows(RecordKind.READ, account="user_status") == 130
    assert _ledger(written).rows(RecordKind.PENDING, account="user_status") == 0


def test_an_update_of_the_version_before_goes_on(written: WrittenLake) -> None:
    for day in range(2):
        _a_day(written, day)
        if day == 0:
            written.batch(USER_STATUS, "user_status", [], reached=day, watermark=-_DELAY_MIN)
    ledger = _ledger(written)
    files = {name: key for name, key in ledger.files.items() if name != UNREAD}
    written.lake.files.write(
        ledger_key(ledger.number), ledger.model_copy(update={"files": files}).model_dump_json().encode()
    )
    _a_day(written, 2)
    ledger = _ledger(written)
    assert _is_right(ledger)
    assert [ledger.rows(kind, account="user_status") for kind in (RecordKind.READ, RecordKind.PENDING)] == [10, 30]


def test_the_files_of_quarantined_records_are_merged(written: WrittenLake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "_FILES_MERGED", 4)
    bad = [_event(f"b{number}", 0, number, verdict="missing_user_id", event_time=None) for number in range(6)]
    for number, record in enumerate(bad):
        _arrive(written, [record], [], number)
        ledger = _ledger(written)
        assert len(ledger.quarantine) < 4
    again = {**_event("b0", 0, 100), "requeued_from": at(0), "source": bad[0]["source"]}
    written.commit(BRONZE_EVENTS, [again], CommitNote(writer="requeue after 0", batch=0))
    written.batch(SILVER_EVENTS, "deduplicate", [again], reached=6)
    ledger = _ledger(written)
    assert (ledger.balances, ledger.quarantined, ledger.rows(RecordKind.REQUEUED)) == (True, {"missing_user_id": 5}, 1)


_RECORDS = st.lists(
    st.lists(st.tuples(st.integers(0, 12), st.integers(-400, 30), st.booleans()), min_size=1, max_size=8),
    min_size=2,
    max_size=4,
)


@given(batches=_RECORDS, steps=st.integers(1, 6))
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_however_often_an_update_is_taken_each_record_has_the_fate_that_was_its_own(
    batches: list[list[tuple[int, int, bool]]], steps: int, tmp_path: Path
) -> None:
    """A deduplicate in plain Python says what became of each record; hours pass from batch to batch."""
    shutil.rmtree(tmp_path / "lake", ignore_errors=True)
    written = WrittenLake(open_lake(str(tmp_path / "lake")))
    kept: dict[int, float] = {}
    in_silver: set[tuple[int, float]] = set()
    lacking = []
    quarantined = 0
    newest: float | None = None
    last = None
    for number, batch in enumerate(batches):
        watermark = None if newest is None else newest - _DELAY_MIN
        kept = {key: expires for key, expires in kept.items() if watermark is None or expires > watermark}
        records, rows = [], []
        for place, (key, offset, is_good) in enumerate(batch):
            minutes = number * 90 + offset
            verdict = "ok" if is_good else "missing_user_id"
            records.append(_event(f"k{key}", minutes, number, verdict=verdict, source=f"t/{number}/{place}"))
            if not is_good:
                quarantined += 1
            elif key in kept or (watermark is not None and minutes <= watermark):
                lacking.append((key, minutes))
            else:
                in_silver.add((key, minutes))
                kept[key] = minutes + _DELAY_MIN
                rows.append(records[-1])
                newest = max(minutes, newest if newest is not None else minutes)
        _arrive(written, records, rows, number, watermark)
        if number % steps == 0:
            last = _ledger(written)
            assert last.balances
    last = _ledger(written)
    assert last.balances
    *_, whole = advance(Settings(), written.lake, lambda: NOON, restart=True)
    assert whole.figures == last.figures
    assert rows_of(written.lake, whole) == rows_of(written.lake, last)
    assert last.rows(RecordKind.QUARANTINED) == quarantined
    copies = sum(any(key == k and abs(minutes - m) <= _DELAY_MIN for k, m in in_silver) for key, minutes in lacking)
    due = {
        RecordKind.KEPT: len(in_silver),
        RecordKind.DUPLICATE: copies,
        RecordKind.LATE_AWAITING: len(lacking) - copies,
    }
    assert _fates(last) == {kind: rows for kind, rows in due.items() if rows}


def test_the_files_of_the_ledger_are_replaced(written: WrittenLake) -> None:
    for version in range(4):
        row = _event(f"e{version}", version, version)
        _arrive(written, [row], [row], version)
        _read_by_all(written, version, 0)
        ledger = _ledger(written)
    there = {file.key for file in written.lake.files.walk(LEDGERS)}
    assert ledger.keys <= there
    assert {name for name in written.lake.files.names(LEDGERS) if name.endswith(".json")} == {"3.json", "4.json"}


def test_the_command_says_first_whether_it_balances(written: WrittenLake, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = _event("a", 0, 1), _event("b", 61, 1, source_name="web")
    _arrive(written, [a, b], [a, b], 0)
    place = written.lake.shown()

    def shown(**options: Any) -> tuple[bool, list[str]]:
        chosen = {"update": True, "by": None, "as_json": False, "restart": False, "from_now": False, "config": None}
        try:
            ledger(place, **(chosen | options))
        except typer.Exit:
            return False, capsys.readouterr().out.splitlines()
        return True, capsys.readouterr().out.splitlines()

    with pytest.raises(LakeError, match="no ledger yet"):
        shown(update=False)
    balances, lines = shown()
    assert balances
    assert lines[0].startswith(f"balances to the row: {place} up to version 0 of bronze and 0 of silver")
    assert ["kept", "2"] in [line.split() for line in lines]
    _, lines = shown(by="source")
    assert ["web", "1", "0", "1", "1", "0", "0", "0"] in [line.split() for line in lines]
    _, lines = shown(by="hour")
    assert ["2026-03-01", "13:00", "1", "0", "1", "1", "0", "0", "0"] in [line.split() for line in lines]
    _, lines = shown(as_json=True, update=False)
    kept = {"account": "records", "kind": "kept", "rows": 2, "verdict": None, "source": None}
    assert kept in json.loads("".join(lines))["figures"]
    _arrive(written, [_event("lost", 0, 2)], [], 1)
    balances, lines = shown()
    assert not balances
    assert lines[0].startswith("DOES NOT BALANCE: 1 unaccounted (records)")


def test_records_in_one_block_of_a_file_leave_quarantine_one_by_one(written: WrittenLake) -> None:
    """JSON lines of a file share their place: only their text distinguishes them."""
    block = "file:///in/a.jsonl#bytes=0-99"
    verdicts = {"x": "missing_user_id", "y": "invalid_event_time", "z": "missing_event_id"}
    bad = [_event("", 0, 1, verdict=verdicts[raw], event_time=None, source=block, raw=raw) for raw in "xxyz"]
    note = CommitNote(writer="ingest", batch=0, query="ingest", reached=[{"logOffset": 0}])
    written.commit(BRONZE_EVENTS, bad, note)
    again = [_event(raw, 0, 2, requeued_from=at(1), source=block, raw=raw) for raw in "xy"]
    written.commit(BRONZE_EVENTS, again, CommitNote(writer="requeue after 0", batch=0))
    written.batch(SILVER_EVENTS, "deduplicate", again, reached=1)
    ledger = _ledger(written)
    assert ledger.balances, ledger.wrong
    assert ledger.quarantined == {"missing_event_id": 1, "missing_user_id": 1}
    assert (ledger.received, ledger.requeued, ledger.ok) == (4, 2, 2)
