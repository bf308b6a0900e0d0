"""The means that late values touch: a stretch of them equals the same part of a computation over the whole series."""

from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.config.choices import AverageOutput
from spark_jobs.queries.moving_average.rule import Average, AverageRule, Reading, Series, reach_us, settle, stretch

_FOR_EVER = 2**62
_rules = st.builds(
    AverageRule, size=st.integers(1, 4), output=st.sampled_from(AverageOutput), timeout_us=st.integers(1, 8)
)
# Many at one time, and silences of every length around the timeout.
_readings = st.lists(st.builds(Reading, st.integers(0, 120), st.sampled_from([0.0, 1.0, 2.5])), max_size=40)


def _means(readings: list[Reading], rule: AverageRule) -> list[Average]:
    return settle(Series(), readings, _FOR_EVER, rule)[1]


@given(live=_readings, late=st.lists(st.builds(Reading, st.integers(40, 60), st.just(7.0)), min_size=1), rule=_rules)
def test_live_means_with_the_stretch_put_in_place_are_those_of_the_whole_series(
    live: list[Reading], late: list[Reading], rule: AverageRule
) -> None:
    first, last = min(late).time_us, max(late).time_us
    reach = reach_us(rule)
    near = [one for one in (*live, *late) if first - reach <= one.time_us <= last + reach]
    found = stretch(near, first, last, rule)
    others = [one for one in _means(live, rule) if not found.has(one.window_end_us, is_last=one.is_last)]
    assert sorted((*others, *found.averages)) == sorted(_means([*live, *late], rule))


@given(live=_readings, rule=_rules, moment=st.integers(0, 120))
def test_nothing_changes_where_nothing_came_late(live: list[Reading], rule: AverageRule, moment: int) -> None:
    found = stretch(live, moment, moment, rule)
    there = [one for one in _means(live, rule) if found.has(one.window_end_us, is_last=one.is_last)]
    assert sorted(found.averages) == sorted(there)


@given(live=_readings, late=st.builds(Reading, st.integers(40, 60), st.just(7.0)), rule=_rules, more=_readings)
def test_what_comes_after_it_is_due_changes_nothing_in_it(
    live: list[Reading], late: Reading, rule: AverageRule, more: list[Reading]
) -> None:
    before = stretch([*live, late], late.time_us, late.time_us, rule)
    later = [one for one in more if one.time_us > before.due_us(rule)]
    after = stretch([*live, late, *later], late.time_us, late.time_us, rule)
    assert after == before
