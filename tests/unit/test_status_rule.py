"""The rule of a user's status, as timelines of minutes."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.config.choices import UserStatus
from spark_jobs.queries.user_status.rule import Presence, StatusChange, close, due_us, settle

_MINUTE = 60_000_000
_HOUR = 60 * _MINUTE
_NEVER = 10**15


def _us(*minutes: float) -> list[int]:
    return [int(minute * _MINUTE) for minute in minutes]


def _told(changes: list[StatusChange]) -> list[tuple[str, float]]:
    return [(change.status.value, change.since_us / _MINUTE) for change in changes]


@pytest.mark.parametrize(
    ("events", "until", "due"),
    [
        pytest.param([0], 10, [("online", 0)], id="the first event"),
        pytest.param([0, 20], 30, [("online", 0), ("active", 20)], id="the next one"),
        pytest.param([0, 20, 50], 60, [("online", 0), ("active", 20)], id="each change once"),
        pytest.param([50, 0, 20], 60, [("online", 0), ("active", 20)], id="in any order"),
        pytest.param([0, 0], 10, [("online", 0), ("active", 0)], id="two at once"),
        pytest.param([0, 20], 79.9, [("online", 0), ("active", 20)], id="not yet an hour after the last"),
        pytest.param([0, 20], 80, [("online", 0), ("active", 20), ("inactive", 80)], id="an hour after the last"),
        pytest.param([0, 60], 70, [("online", 0), ("active", 60)], id="just an hour is still there"),
        pytest.param([0, 60.1], 70, [("online", 0), ("inactive", 60), ("online", 60.1)], id="more is not, seen or not"),
        pytest.param([10, 20], 15, [("online", 10)], id="one that another may come before waits"),
        pytest.param([0], 60, [("online", 0), ("inactive", 60)], id="who was never active"),
    ],
)
def test_events_become_changes(events: list[float], until: float, due: list[tuple[str, float]]) -> None:
    assert _told(settle(Presence(), _us(*events), int(until * _MINUTE), _HOUR)[1]) == due


def test_of_an_inactive_user_nothing_is_known() -> None:
    known, _ = settle(Presence(), _us(0), _HOUR, _HOUR)
    assert known == Presence()
    assert known.is_empty


def test_by_the_clock_on_the_wall_the_user_is_inactive_from_then_on() -> None:
    known, changes = settle(Presence(), _us(0, 600), _NEVER, None)
    assert _told(changes) == [("online", 0), ("active", 600)]
    assert close(known, 700 * _MINUTE) == [StatusChange(UserStatus.INACTIVE, 700 * _MINUTE)]
    assert close(Presence(), 1) == []


_EVENTS = st.lists(st.sampled_from((0, 1, 30, 59.5, 60, 61, 121, 122, 200, 261.5)), min_size=1, max_size=10)


@given(events=_EVENTS, cuts=st.lists(st.sampled_from((0, 30, 60, 61, 100, 122, 250)), max_size=4))
def test_however_it_is_cut_into_batches_the_rows_are_those_of_one(events: list[float], cuts: list[int]) -> None:
    at_once = settle(Presence(), _us(*events), _NEVER, _HOUR)[1]
    known, step_by_step = Presence(), list[StatusChange]()
    for before, until in pairwise([-1, *sorted(cuts), _NEVER]):
        batch = [time for time in _us(*events) if before * _MINUTE < time <= until * _MINUTE]
        known, changes = settle(known, batch[::-1], min(until * _MINUTE, _NEVER), _HOUR)
        step_by_step += changes
    assert step_by_step == at_once
    assert known.is_empty


@given(events=_EVENTS)
def test_no_change_is_told_twice(events: list[float]) -> None:
    _, changes = settle(Presence(), _us(*events), _NEVER, _HOUR)
    assert all(one.status is not other.status for one, other in pairwise(changes))
    assert changes[-1].status is UserStatus.INACTIVE


@given(events=_EVENTS)
def test_at_its_time_there_is_something_to_decide_and_before_there_is_not(events: list[float]) -> None:
    known = Presence(waiting=tuple(sorted(_us(*events))))
    while (due := due_us(known, _HOUR)) is not None:
        assert settle(known, (), due - 1, _HOUR) == (known, [])
        after, _ = settle(known, (), due, _HOUR)
        assert after != known
        known = after
    assert known.is_empty
