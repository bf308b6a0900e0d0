"""What is known of days without Spark: from commits and their notes, and from reports of replays."""

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.config.durations import EPOCH, milliseconds
from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import ATTRIBUTIONS, RESTATEMENTS, SILVER_EVENTS, USER_STATUS, Table
from spark_jobs.days.day import Day, DaysSeen, DayStatus
from spark_jobs.days.evidence import read_audits, take_snapshot
from spark_jobs.days.status import Audit
from spark_jobs.lake.layout import Lake, commit_key
from spark_jobs.lake.notes import CommitNote
from spark_jobs.lake.open import open_lake
from spark_jobs.restatements.plan import done_key, plan_key
from spark_jobs.restatements.replay_model import REPLAYS

_DAY = date(2026, 3, 1)
_END = datetime(2026, 3, 2, tzinfo=UTC)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return open_lake(str(tmp_path / "lake"))


def _commit(lake: Lake, table: Table, version: int, *adds: tuple[str, date], **note: Any) -> None:
    """A commit with files of these event types and dates, and with a note."""
    lines: list[dict[str, Any]] = [
        {"add": {"path": f"{version}-{place}", "partitionValues": {"event_type": kind, "event_date": day.isoformat()}}}
        for place, (kind, day) in enumerate(adds)
    ]
    if note:
        text = CommitNote(writer="w", batch=version, **note).as_metadata()
        lines.append({"commitInfo": {"userMetadata": text}})
    lake.files.write(commit_key(table, version), "\n".join(map(json.dumps, lines)).encode())


def _ms(time: datetime) -> int:
    return milliseconds(time - EPOCH)


def _deduplicated(lake: Lake, version: int, watermark: datetime, *adds: tuple[str, date]) -> None:
    _commit(lake, SILVER_EVENTS, version, *adds, query="deduplicate", watermark_ms=_ms(watermark), reached=[{}])


def _read(lake: Lake, table: Table, query: str, watermark: datetime, *silver: int) -> None:
    reached = [{"reservoirVersion": version, "index": 5} for version in silver]
    _commit(lake, table, 0, query=query, watermark_ms=_ms(watermark), reached=reached)


def _seen(version: int) -> DaysSeen:
    return DaysSeen(silver_version=version, first=_DAY, last=_DAY, dates=(_DAY,), restatements_version=-1)


def test_dates_come_from_new_commits_and_heartbeats_are_none(lake: Lake) -> None:
    late, newest = _DAY - timedelta(days=2), _DAY + timedelta(days=1)
    _commit(lake, SILVER_EVENTS, 0, ("click", date(2020, 1, 1)))
    _commit(lake, SILVER_EVENTS, 1, ("click", newest), ("impression", late))
    _commit(lake, SILVER_EVENTS, 2, ("heartbeat", _DAY + timedelta(days=9)))
    look = take_snapshot(lake, Settings(), _seen(0))
    assert (look.event_dates, look.silver_version, look.needs_spark) == (frozenset({late, _DAY, newest}), 2, False)


def test_a_commit_of_dates_far_apart_has_none_between(lake: Lake) -> None:
    old = date(2000, 1, 1)
    _commit(lake, SILVER_EVENTS, 0, ("click", _DAY))
    _commit(lake, SILVER_EVENTS, 1, ("click", old), ("click", _DAY), ("heartbeat", _DAY + timedelta(days=9)))
    assert take_snapshot(lake, Settings(), _seen(0)).event_dates == frozenset({old, _DAY})


_OF_BEFORE = DaysSeen(silver_version=2, first=_DAY, last=_DAY, restatements_version=-1)


@pytest.mark.parametrize(
    "seen", [None, _seen(0), _OF_BEFORE], ids=["nothing was seen", "a commit is gone", "a file without dates"]
)
def test_dates_that_the_log_does_not_tell_are_asked_of_spark(lake: Lake, seen: DaysSeen | None) -> None:
    _commit(lake, SILVER_EVENTS, 2, ("click", _DAY))
    look = take_snapshot(lake, Settings(), seen)
    assert (look.event_dates, look.needs_spark) == (None, True)


def test_a_lake_without_silver_has_no_days(lake: Lake) -> None:
    look = take_snapshot(lake, Settings(), None)
    assert (look.event_dates, look.needs_spark, look.standings) == (frozenset(), False, [])


@pytest.mark.parametrize(
    ("watermark", "passed"),
    [
        pytest.param(_END + timedelta(days=2) - timedelta(milliseconds=1), _DAY + timedelta(days=1), id="not passed"),
        pytest.param(_END + timedelta(days=2), _DAY + timedelta(days=2), id="passed"),
    ],
)
def test_quiet_days_have_passed_when_the_watermark_has(lake: Lake, watermark: datetime, passed: date) -> None:
    _deduplicated(lake, 0, watermark, ("click", _DAY))
    assert take_snapshot(lake, Settings(), _seen(0)).passed == passed


def test_a_table_stands_where_its_last_batch_left_it(lake: Lake) -> None:
    for version in range(4):
        _deduplicated(lake, version, _END + timedelta(hours=version), ("click", _DAY))
    _commit(lake, SILVER_EVENTS, 4, ("heartbeat", _DAY))
    # The slower of its two sides counts.
    _read(lake, ATTRIBUTIONS, "attribute", _END + timedelta(hours=9), 2, 4)
    (standing,) = take_snapshot(lake, Settings(), _seen(4)).standings
    assert (standing.table, standing.version, standing.holds) == ("attributions", 0, timedelta(hours=1))
    assert standing.watermark == _END + timedelta(hours=9)
    assert (standing.upstream, standing.has_upstream) == (_END + timedelta(hours=2), True)


def test_whether_deduplicate_drops_anything_is_a_setting(lake: Lake) -> None:
    _deduplicated(lake, 0, EPOCH, ("click", _DAY))
    _read(lake, ATTRIBUTIONS, "attribute", _END, 0, 0)
    forever = Settings.model_validate({"deduplicate": {"mode": "forever"}})
    (standing,) = take_snapshot(lake, forever, _seen(0)).standings
    assert (standing.upstream, standing.has_upstream) == (None, False)


def test_a_query_by_the_wall_clock_has_no_days(lake: Lake) -> None:
    _deduplicated(lake, 0, _END, ("click", _DAY))
    _read(lake, USER_STATUS, "user_status", _END, 0)
    by_events, by_clock = (Settings.model_validate({"user_status": {"clock": one}}) for one in ("event", "processing"))
    assert [one.table for one in take_snapshot(lake, by_events, _seen(0)).standings] == ["user_status"]
    assert take_snapshot(lake, by_clock, _seen(0)).standings == []


def test_new_restatements_are_looked_at_by_spark_and_old_ones_are_not(lake: Lake) -> None:
    _commit(lake, SILVER_EVENTS, 0, ("click", _DAY))
    _commit(lake, RESTATEMENTS, 0)
    assert take_snapshot(lake, Settings(), _seen(0)).needs_spark
    counted = _seen(0).model_copy(update={"restatements_version": 0})
    assert not take_snapshot(lake, Settings(), counted).needs_spark


def test_the_last_repair_that_is_done_counts(lake: Lake) -> None:
    for number in (1, 2, 3):
        lake.files.write(plan_key(number), b"{}")
    for number in (1, 2):
        lake.files.write(done_key(number), b"{}")
    assert take_snapshot(lake, Settings(), None).last_repair == 2


_COMPLETE = Day("attributions", _DAY, DayStatus.COMPLETE, complete_at=_END)
_NAME = "20260301T000000.000000Z_20260302T000000.000000Z"
_REPORT = {
    "begin": "2026-03-01T00:00:00Z",
    "end": "2026-03-02T00:00:00Z",
    "decided_at": "2026-03-05T01:02:03.000004Z",
    "tables": {
        "attributions": {"version": 3, "watermark_ms": 7, "same": 9, "late": 0, "open": 0, "unknown": 0},
        "sessions": {"version": 3, "watermark_ms": 7, "same": 9, "late": 0, "open": 0, "unknown": 1},
    },
}


def _report(lake: Lake, text: bytes, name: str = _NAME) -> None:
    lake.files.write(f"{REPLAYS}/{name}.json", text)


@pytest.mark.parametrize("name", [_NAME, f"{_NAME}_attributions_sessions"], ids=["all tables", "some tables"])
def test_a_table_that_a_replay_agreed_with_is_audited(lake: Lake, name: str) -> None:
    _report(lake, json.dumps(_REPORT).encode(), name)
    lake.files.write(f"{REPLAYS}/{name}.html", b"a page")
    decided = datetime(2026, 3, 5, 1, 2, 3, 4, UTC)
    start = _END - timedelta(days=1)
    assert read_audits(lake, [_COMPLETE]) == [Audit("attributions", start, _END, decided)]


@pytest.mark.parametrize(
    "found", [{"late": 1}, {"open": 1}, {"unknown": 1}], ids=["late rows", "open rows", "rows that nothing explains"]
)
def test_a_replay_that_found_anything_audits_nothing(lake: Lake, found: dict[str, int]) -> None:
    table = {**_REPORT["tables"]["attributions"], **found}  # type: ignore[index]
    _report(lake, json.dumps({**_REPORT, "tables": {"attributions": table}}).encode())
    assert read_audits(lake, [_COMPLETE]) == []


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"begin": 1}'], ids=["empty", "cut off", "a list", "another"])
def test_a_report_that_cannot_be_read_audits_nothing(lake: Lake, text: bytes) -> None:
    _report(lake, text)
    assert read_audits(lake, [_COMPLETE]) == []


def test_only_reports_that_can_change_a_status_are_read(lake: Lake) -> None:
    """Else each update would read every report there ever was."""
    text = json.dumps(_REPORT).encode()
    _report(lake, text)
    assert read_audits(lake, [Day("attributions", _DAY)]) == [], "the day is open"
    audited = Day("attributions", _DAY, DayStatus.AUDITED, complete_at=_END, audited_at=_END)
    assert read_audits(lake, [audited]) == [], "it is audited already"
    other = Day("attributions", _DAY + timedelta(days=1), DayStatus.COMPLETE, complete_at=_END)
    assert read_audits(lake, [other]) == [], "it is about another day"
