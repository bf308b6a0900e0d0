"""When a day is done: its status as a timeline, one step either side of each boundary."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.config.durations import ROUNDING
from spark_jobs.days.day import Day, DayStatus
from spark_jobs.days.status import QUIET_DAYS, Audit, DayChange, Evidence, TableProgress, days_of, next_days, passed

_TABLE, _DATE = "attributions", date(2026, 3, 1)
_START = datetime(2026, 3, 1, tzinfo=UTC)
_END = _START + timedelta(days=1)
_HOLDS, _FREEZE = timedelta(hours=1), timedelta(days=35)
_CLOSED = _END + _HOLDS + ROUNDING
"""The first watermark at which the day is complete."""
_STEP = timedelta(milliseconds=1)
_WALL = datetime(2026, 3, 5, 12, tzinfo=UTC)


def _standing(watermark: datetime | None = _CLOSED, **more: object) -> TableProgress:
    plain = TableProgress(_TABLE, 7, watermark, upstream=_END, has_upstream=True, holds=_HOLDS)
    return replace(plain, **more)  # type: ignore[arg-type]


def _evidence(standing: TableProgress, **more: object) -> Evidence:
    plain = Evidence([standing], [_DATE], 0, None, (), _FREEZE, _WALL)
    return replace(plain, **more)  # type: ignore[arg-type]


def _only(days: Sequence[Day]) -> Day:
    (day,) = days
    return day


@dataclass(frozen=True)
class _Moment:
    """A part of a timeline: what is new, and the status that must follow."""

    due: str
    watermark: datetime = _CLOSED
    repairs: tuple[int, ...] = ()
    audited: bool = False
    done: int = 0


def _changes(repairs: Sequence[int]) -> list[DayChange]:
    return [
        DayChange(_TABLE, _DATE, number, _WALL + timedelta(hours=number), rows=2, clicks=1, cost_micros=10 * number)
        for number in repairs
    ]


_TIMELINES = {
    "open-complete-restated-audited-restated-frozen": [
        _Moment("open", watermark=_END),
        _Moment("complete"),
        _Moment("restated 1", repairs=(2,), done=2),
        _Moment("audited", repairs=(2,), done=2, audited=True),
        _Moment("restated 2", repairs=(2, 4), done=4),
        _Moment("frozen", repairs=(2, 4), done=4, watermark=_END + _FREEZE + _STEP),
    ],
    "what a repair changed before the day was complete is no restatement": [
        _Moment("open", watermark=_END, repairs=(1,), done=1),
        _Moment("complete", repairs=(1,), done=1),
        _Moment("restated 1", repairs=(1, 2), done=2),
    ],
    "a repair that is not done yet when the day is complete restates it": [
        _Moment("restated 1", repairs=(1, 2), done=1),
    ],
    "an open day is not audited": [
        _Moment("open", watermark=_END, audited=True),
        _Moment("complete"),
    ],
    "a day that was audited and is restated is audited again": [
        _Moment("complete"),
        _Moment("audited", audited=True),
        _Moment("restated 1", repairs=(2,), done=2),
        _Moment("audited", repairs=(2,), done=2, audited=True),
    ],
    "a frozen day stays as it is": [
        _Moment("frozen", watermark=_END + _FREEZE + _STEP),
        _Moment("frozen", watermark=_END + _FREEZE + _STEP, repairs=(1,), done=1),
        _Moment("frozen", watermark=_END + _FREEZE + _STEP, audited=True),
    ],
    "a watermark that is behind again after a reset opens no day": [
        _Moment("complete"),
        _Moment("complete", watermark=_START),
    ],
}


@pytest.mark.parametrize("moments", _TIMELINES.values(), ids=list(_TIMELINES))
def test_the_status_follows_the_timeline(moments: list[_Moment]) -> None:
    days: list[Day] = []
    for hour, moment in enumerate(moments):
        # Repair n is planned n hours after _WALL, so half an hour before the moment that it belongs to.
        now = _WALL + timedelta(hours=hour, minutes=30)
        evidence = _evidence(
            _standing(moment.watermark),
            last_repair=moment.done,
            changes=_changes(moment.repairs),
            audits=[Audit(_TABLE, _START, _END, now)] if moment.audited else (),
            now=now,
        )
        days = next_days(days, evidence)
        assert _only(days).words == moment.due, f"moment {hour}"
        assert next_days(days, replace(evidence, now=now + timedelta(hours=9))) == days, "a second look changes nothing"


@pytest.mark.parametrize(
    ("standing", "is_complete"),
    [
        pytest.param(_standing(_CLOSED - _STEP), False, id="the watermark a millisecond short"),
        pytest.param(_standing(_CLOSED), True, id="the watermark past the day and what the query holds"),
        pytest.param(_standing(None), False, id="no watermark yet"),
        pytest.param(_standing(upstream=_END - _STEP), False, id="deduplicate could still keep an event of the day"),
        pytest.param(_standing(upstream=_END), True, id="deduplicate could keep none"),
        pytest.param(_standing(upstream=None), False, id="deduplicate had no watermark yet"),
        pytest.param(_standing(upstream=None, has_upstream=False), True, id="deduplicate remembers for ever"),
        pytest.param(_standing(open_since=_END - _STEP), False, id="a session that began on the day goes on"),
        pytest.param(_standing(open_since=_END), True, id="a session that began on the next day goes on"),
    ],
)
def test_a_day_is_complete_when_nothing_can_change_it(standing: TableProgress, *, is_complete: bool) -> None:
    day = _only(next_days([], _evidence(standing)))
    assert (day.status is DayStatus.COMPLETE) is is_complete
    assert (day.complete_at == _WALL) is is_complete
    assert day.watermark == (standing.watermark if is_complete else None)
    assert (day.version, day.updated_at) == (7, _WALL)


@pytest.mark.parametrize(
    ("watermark", "due"),
    [
        pytest.param(_END + _FREEZE, DayStatus.COMPLETE, id="just as long"),
        pytest.param(_END + _FREEZE + _STEP, DayStatus.FROZEN, id="longer"),
    ],
)
def test_a_day_is_frozen_when_its_last_row_is(watermark: datetime, due: DayStatus) -> None:
    assert _only(next_days([], _evidence(_standing(watermark)))).status is due


@pytest.mark.parametrize(
    ("audit", "is_audited"),
    [
        pytest.param(Audit(_TABLE, _START, _END, _WALL), True, id="the day"),
        pytest.param(Audit(_TABLE, _START - _STEP, _END + _STEP, _WALL), True, id="more than the day"),
        pytest.param(Audit(_TABLE, _START + _STEP, _END, _WALL), False, id="not its first millisecond"),
        pytest.param(Audit(_TABLE, _START, _END - _STEP, _WALL), False, id="not its last millisecond"),
        pytest.param(Audit("sessions", _START, _END, _WALL), False, id="another table"),
        pytest.param(Audit(_TABLE, _START, _END, _WALL - _STEP), False, id="before it was complete"),
    ],
)
def test_a_day_is_audited_by_a_replay_of_all_of_it(audit: Audit, *, is_audited: bool) -> None:
    day = _only(next_days([], _evidence(_standing(), audits=[audit])))
    assert (day.status is DayStatus.AUDITED) is is_audited
    assert (day.audited_at == audit.decided_at) is is_audited


def test_an_audit_that_is_as_old_as_the_last_change_does_not_count() -> None:
    complete = next_days([], _evidence(_standing()))
    changes = _changes([1])
    for step, due in ((timedelta(), "restated 1"), (_STEP, "audited")):
        audit = Audit(_TABLE, _START, _END, changes[0].decided_at + step)
        assert _only(next_days(complete, _evidence(_standing(), changes=changes, audits=[audit]))).words == due


def test_restatements_are_counted_by_repair_and_summed() -> None:
    complete = next_days([], _evidence(_standing()))
    day = _only(next_days(complete, _evidence(_standing(), changes=[*_changes([1, 3]), *_changes([3])])))
    assert (day.restated, day.changes, day.clicks, day.cost_micros) == (2, 6, 3, 70)
    assert day.restated_at == _WALL + timedelta(hours=3)


def test_each_table_has_each_day() -> None:
    dates = [_DATE + timedelta(days=number) for number in range(4)]
    other = _standing(_CLOSED + timedelta(days=2), table="sessions", upstream=_END + timedelta(days=1))
    found = next_days([], _evidence(_standing(), standings=[_standing(), other], dates=dates))
    words = {(day.table_name, day.event_date.day): day.words for day in found}
    assert words == {
        **{(_TABLE, day): "complete" if day == 1 else "open" for day in (1, 2, 3, 4)},
        **{("sessions", day): "complete" if day <= 2 else "open" for day in (1, 2, 3, 4)},
    }


def test_days_of_a_table_that_is_not_in_use_stay_as_they_were() -> None:
    before = next_days([], _evidence(_standing()))
    assert next_days(before, _evidence(_standing(), standings=[], dates=[])) == before


_OLD = date(2000, 1, 1)


@pytest.mark.parametrize(
    ("events", "passed", "due"),
    [
        pytest.param([], _DATE, [], id="no events"),
        pytest.param([_DATE], None, [_DATE], id="no watermark"),
        pytest.param([_OLD, _DATE], None, [_OLD, _DATE], id="an event of the year 2000 is one day"),
        pytest.param([date(2026, 3, 1)], date(2026, 3, 3), [date(2026, 3, day) for day in (1, 2, 3)], id="silence"),
        pytest.param([date(2026, 3, 1)], date(2026, 2, 1), [date(2026, 3, 1)], id="a watermark before the events"),
        pytest.param([_OLD], _DATE, [_OLD], id="the watermark has left all events far behind"),
        pytest.param(
            [_OLD, date(2026, 2, 27), _DATE],
            None,
            [_OLD, date(2026, 2, 27), date(2026, 2, 28), _DATE],
            id="a quiet day",
        ),
    ],
)
def test_days_are_dates_with_events_and_the_quiet_ones_among_the_last(
    events: list[date], passed: date | None, due: list[date]
) -> None:
    assert days_of(events, passed) == due


_DATES = st.dates(_OLD, date(2030, 1, 1))


@given(st.sets(_DATES, min_size=1, max_size=9), st.none() | _DATES)
def test_the_days_of_a_lake_are_bounded_by_its_events(events: set[date], passed: date | None) -> None:
    found = days_of(events, passed)
    assert found == sorted(set(found))
    assert events <= set(found)
    newest = max(events | ({passed} if passed else set()))
    quiet = set(found) - events
    assert all(newest - timedelta(days=QUIET_DAYS) < day <= newest for day in quiet)
    assert all(min(events) < day for day in quiet)
    lively = [day for day in events if newest - timedelta(days=QUIET_DAYS) < day]
    if lively:
        whole = (newest - min(lively)).days + 1
        assert found[-whole:] == [min(lively) + timedelta(days=number) for number in range(whole)]


@pytest.mark.parametrize(
    ("day", "is_kept"),
    [
        pytest.param(Day(_TABLE, _OLD), False, id="open"),
        pytest.param(Day(_TABLE, _OLD, complete_at=_END), False, id="complete"),
        pytest.param(Day(_TABLE, _OLD, complete_at=_END, frozen_at=_END), False, id="frozen when it was first seen"),
        pytest.param(Day(_TABLE, _OLD, complete_at=_END, frozen_at=_WALL), True, id="complete, later frozen"),
        pytest.param(Day(_TABLE, _OLD, complete_at=_END, frozen_at=_END, restated=1), True, id="restated"),
        pytest.param(Day(_TABLE, _OLD, complete_at=_END, frozen_at=_END, audited_at=_END), True, id="audited"),
        pytest.param(Day("left", _OLD, complete_at=_END), True, id="of a table that is not in use"),
        pytest.param(Day(_TABLE, _DATE - timedelta(days=QUIET_DAYS)), False, id="just too old"),
        pytest.param(Day(_TABLE, _DATE - timedelta(days=QUIET_DAYS - 1)), True, id="just new enough"),
        pytest.param(Day(_TABLE, _DATE + timedelta(days=9)), True, id="newer: the watermark was behind again"),
    ],
)
def test_a_quiet_day_of_long_ago_is_dropped_unless_somebody_relies_on_it(day: Day, *, is_kept: bool) -> None:
    assert (day.key in {one.key for one in next_days([day], _evidence(_standing()))}) is is_kept
    with_events = _evidence(_standing(), dates=sorted({day.event_date, _DATE}))
    assert day.key in {one.key for one in next_days([day], with_events)}


_STEPS = st.lists(
    st.tuples(
        st.integers(-3, 40 * 24),  # hours of the watermark past the end of the day
        st.integers(0, 2),  # repairs done since
        st.booleans(),  # whether they changed the day
        st.booleans(),  # whether a replay agreed
    ),
    max_size=12,
)


@given(_STEPS)
def test_no_day_becomes_open_again_and_no_restatement_is_forgotten(steps: list[tuple[int, int, bool, bool]]) -> None:
    days: list[Day] = []
    done, told, before = 0, list[int](), Day(_TABLE, _DATE)
    for hour, (hours_passed, repairs, has_changed, is_audited) in enumerate(steps):
        told += [done + number for number in range(1, repairs + 1)] if has_changed else []
        done += repairs
        now = _WALL + timedelta(hours=10 * hour)
        audits = [Audit(_TABLE, _START, _END, now)] if is_audited else []
        watermark = _END + timedelta(hours=hours_passed)
        days = next_days(
            days, _evidence(_standing(watermark), last_repair=done, changes=_changes(told), audits=audits, now=now)
        )
        day = _only(days)
        assert not (before.status is not DayStatus.OPEN and day.status is DayStatus.OPEN)
        assert not (before.status is DayStatus.FROZEN and day.status is not DayStatus.FROZEN)
        assert day.restated >= before.restated
        assert day.complete_at in (before.complete_at, now)
        assert day.restated <= len(told)
        before = day


def test_an_event_of_long_ago_does_not_make_the_days_since_then_quiet_ones() -> None:
    long_ago = _DATE - timedelta(days=QUIET_DAYS)
    assert days_of([long_ago, _DATE], None) == [long_ago, _DATE]
    assert len(days_of([long_ago + timedelta(days=1), _DATE], None)) == QUIET_DAYS


def test_the_days_that_have_passed_are_the_open_ones_of_the_table() -> None:
    open_day, closed = Day(_TABLE, _DATE), replace(Day(_TABLE, _DATE - timedelta(days=1)), complete_at=_WALL)
    coming, other = Day(_TABLE, _DATE + timedelta(days=1)), Day("sessions", _DATE)
    assert passed([coming, open_day, closed, other], _standing()) == [open_day]
