"""Intervals, colors and shares of the part about records that did not fit; no Spark."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from expectations.intervals import MOST_BARS, describe, interval_between, start_of
from expectations.rejected_records.figures import RejectedFigures, SourceFigures, VerdictFigures
from expectations.rejected_records.page import RejectedPart, rejected_part
from expectations.timelines import Bar, Timelines

_MONDAY = datetime(2026, 3, 2, tzinfo=UTC)
_MINUTE, _HOUR, _DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
_TIMES = st.integers(-50 * 365 * 86_400_000_000, 50 * 365 * 86_400_000_000).map(
    lambda micros: _MONDAY + timedelta(microseconds=micros)
)


@given(_TIMES, _TIMES)
def test_no_time_needs_more_bars_than_there_is_room_for(one: datetime, other: datetime) -> None:
    first, last = sorted((one, other))
    interval = interval_between(first, last)
    bars = {start_of(first, interval), start_of(last, interval)}
    start = min(bars)
    assert start <= first < start + interval
    assert (max(bars) - start) / interval + 1 <= MOST_BARS
    assert describe(interval)


@pytest.mark.parametrize(
    ("length", "interval"),
    [
        pytest.param(timedelta(), _MINUTE, id="one batch"),
        pytest.param(59 * _MINUTE, _MINUTE, id="60 bars of a minute"),
        pytest.param(_HOUR, 5 * _MINUTE, id="61 would be too many"),
        pytest.param(59 * _HOUR, _HOUR, id="hours"),
        pytest.param(59 * _DAY, _DAY, id="days"),
        pytest.param(60 * _DAY, 2 * _DAY, id="pairs of days"),
        pytest.param(52 * 7 * _DAY, 7 * _DAY, id="weeks"),
        pytest.param(10 * 365 * _DAY, 9 * 7 * _DAY, id="ten years"),
    ],
)
def test_bars_are_as_short_as_there_is_room_for(length: timedelta, interval: timedelta) -> None:
    assert interval_between(_MONDAY, _MONDAY + length) == interval


def test_weeks_begin_on_mondays() -> None:
    assert start_of(_MONDAY + 6 * _DAY, 7 * _DAY) == _MONDAY


@pytest.mark.parametrize(
    ("records", "received", "shown"),
    [
        (1, 3, "33.33%"),
        (1, 1_000_000, "<0.01%"),
        (1, 10_000, "0.01%"),
        (0, 5, "0.00%"),
        (0, 0, "0.00%"),
        (5, 5, "100.00%"),
    ],
)
def test_a_share_that_is_not_none_is_not_shown_as_none(records: int, received: int, shown: str) -> None:
    assert RejectedPart.share(records, received) == shown


def _figures(sources: int, verdicts: int) -> RejectedFigures:
    """Sources of which each has every verdict once, at the same time."""
    names = [f"source_{number:02}" for number in range(sources)]
    kinds = [f"verdict_{number:02}" for number in range(verdicts)]
    found = tuple(VerdictFigures(kind, 1, _MONDAY, _MONDAY) for kind in kinds)
    return RejectedFigures(
        version=0,
        received=sources * verdicts,
        sources=tuple(SourceFigures(name, verdicts, 0, found) for name in names),
        timelines=Timelines(tuple(Bar(name, kind, _MONDAY, 1) for name in names for kind in kinds), _HOUR, _MONDAY),
    )


def test_rare_verdicts_share_a_color_and_a_part_of_each_bar() -> None:
    part = rejected_part(_figures(sources=1, verdicts=9))
    assert part is not None
    assert [*part.colors] == [*(f"verdict_{number:02}" for number in range(6)), "others"]
    assert part.color("verdict_08") == part.colors["others"]
    assert part.chart.count('aria-roledescription="bar"') == 7
    assert "one hour: 3 others" in part.chart


def test_six_verdicts_have_a_color_each() -> None:
    part = rejected_part(_figures(sources=1, verdicts=6))
    assert part is not None
    assert "others" not in part.colors
    assert len(set(part.colors.values())) == 6


def test_the_chart_shows_the_sources_with_the_most_records() -> None:
    part = rejected_part(_figures(sources=11, verdicts=1))
    assert part is not None
    assert part.charted == 8
    assert "source_07" in part.chart
    assert "source_08" not in part.chart
