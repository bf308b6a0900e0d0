"""The moving average's rule, as timelines of minutes."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.config.choices import AverageOutput
from spark_jobs.queries.moving_average.rule import Average, AverageRule, Reading, Series, close, due_us, settle

_MINUTE = 60_000_000
_HOUR = 60 * _MINUTE
_NEVER = 10**15
FULL = AverageRule(3, AverageOutput.FULL, _HOUR)
EVERY = AverageRule(3, AverageOutput.EVERY, _HOUR)
OPEN_END = AverageRule(3, AverageOutput.FULL, None)


def _readings(*values: tuple[float, float]) -> list[Reading]:
    return [Reading(int(minute * _MINUTE), value) for minute, value in values]


_Told = tuple[float, float, int, float, bool]
"""An average, its times in minutes."""


def _told(averages: list[Average]) -> list[_Told]:
    return [(a.window_start_us / _MINUTE, a.window_end_us / _MINUTE, *a[2:]) for a in averages]


@pytest.mark.parametrize(
    ("rule", "readings", "until", "due"),
    [
        pytest.param(FULL, [(0, 4), (10, 6)], 15, [], id="nothing before there are three"),
        pytest.param(EVERY, [(0, 4), (10, 6)], 15, [(0, 0, 1, 0, False), (0, 10, 2, 0, False)], id="zeros before"),
        pytest.param(FULL, [(0, 4), (10, 6), (20, 8)], 20, [(0, 20, 3, 6, False)], id="three"),
        pytest.param(
            FULL,
            [(0, 4), (10, 6), (20, 8), (30, 1)],
            30,
            [(0, 20, 3, 6, False), (10, 30, 3, 5, False)],
            id="the last three",
        ),
        pytest.param(FULL, [(20, 8), (0, 4), (10, 6)], 20, [(0, 20, 3, 6, False)], id="in any order"),
        pytest.param(FULL, [(0, 4), (10, 6), (20, 8)], 19, [], id="one that another may come before waits"),
        pytest.param(FULL, [(0, 4)], 60, [(0, 0, 1, 4, True)], id="after the timeout once more"),
        pytest.param(FULL, [(0, 4)], 59.9, [], id="not before the timeout"),
        pytest.param(
            FULL,
            [(0, 4), (60, 6), (120, 8)],
            130,
            [(0, 120, 3, 6, False)],
            id="a silence of just the timeout",
        ),
        pytest.param(
            FULL,
            [(0, 4), (10, 6), (70.1, 8)],
            71,
            [(0, 10, 2, 5, True)],
            id="a longer one starts over",
        ),
    ],
)
def test_readings_become_averages(
    rule: AverageRule,
    readings: list[tuple[float, float]],
    until: float,
    due: list[tuple[float, float, int, float, bool]],
) -> None:
    assert _told(settle(Series(), _readings(*readings), int(until * _MINUTE), rule)[1]) == due


def test_without_a_timeout_a_silence_ends_nothing_and_closing_tells_what_there_is() -> None:
    known, put_out = settle(Series(), _readings((0, 4), (600, 6)), _NEVER, OPEN_END)
    assert put_out == []
    assert _told(close(known)) == [(0, 600, 2, 5, True)]
    assert due_us(known, OPEN_END) is None
    assert close(Series()) == []


def test_what_is_closed_is_forgotten() -> None:
    known, _ = settle(Series(), _readings((0, 4)), 60 * _MINUTE, FULL)
    assert known.is_empty
    assert due_us(known, FULL) is None


_SERIES = st.lists(
    st.tuples(st.sampled_from((0, 1, 5, 59.5, 60, 61, 121, 122, 200, 261.5)), st.integers(0, 5)),
    min_size=1,
    max_size=12,
)


@given(
    readings=_SERIES,
    cuts=st.lists(st.sampled_from((0, 30, 60, 61, 100, 122, 250)), max_size=4),
    rule=st.sampled_from((FULL, EVERY)),
)
def test_however_it_is_cut_into_batches_the_rows_are_those_of_one(
    readings: list[tuple[float, float]], cuts: list[int], rule: AverageRule
) -> None:
    """A batch under a watermark brings nothing from before it: that is what Spark promises."""
    everything = _readings(*readings)
    at_once = settle(Series(), everything, _NEVER, rule)[1]
    known, step_by_step = Series(), list[Average]()
    for before, until in pairwise([-1, *sorted(cuts), _NEVER]):
        batch = [reading for reading in everything if before * _MINUTE < reading.time_us <= until * _MINUTE]
        known, put_out = settle(known, batch[::-1], min(until * _MINUTE, _NEVER), rule)
        step_by_step += put_out
    assert step_by_step == at_once
    assert known.is_empty


@given(readings=_SERIES)
def test_at_its_time_there_is_something_to_decide_and_before_there_is_not(readings: list[tuple[float, float]]) -> None:
    known = Series((), tuple(sorted(_readings(*readings))))
    while (due := due_us(known, FULL)) is not None:
        assert settle(known, (), due - 1, FULL) == (known, [])
        after, _ = settle(known, (), due, FULL)
        assert after != known
        known = after
    assert known.is_empty
