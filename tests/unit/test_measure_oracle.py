"""The oracle's own view of statistics, averages and status, against rows counted by hand."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.config.settings import Settings
from tests.support.oracle import Expected, Row, expected_tables
from tests.support.source_files import write_files
from tests.support.timeline import Case, Run

_RECEIPT = datetime(2024, 5, 2, tzinfo=UTC)
_NOON = datetime(2024, 5, 1, 12)  # noqa: DTZ001 naive means UTC throughout
_TIMELINE = """
    12:00:00         imp  i1 u1 c1 cost=250
    12:09:59.999999  imp  i2 u1 c1 cost=100
    12:10:00         clk  k1 u1 ->i1
    12:10:00         imp  i3 u2 c2
    13:00:00         clk  k2 u1 ->i1
    13:00:00         clk  k3 u2 ->nobody
    13:09:59.999999  clk  k4 u2 ->i2
"""


def _expected(folder: Path, timeline: str, **settings: dict[str, Any]) -> Expected:
    used = Settings.model_validate(settings)
    source = write_files(folder / "source", Case("x", timeline, Run("x", used)).files())
    return expected_tables(source, used, _RECEIPT)


def _minutes(row: Row) -> tuple[Any, ...]:
    return tuple((cell - _NOON) / timedelta(minutes=1) if isinstance(cell, datetime) else cell for cell in row)


def _gross(row: Row) -> tuple[Any, ...]:
    """A window without its net columns: nothing is marked."""
    *gross, impressions, clicks, cost = _minutes(row)
    assert gross[3:6] == [impressions, clicks, cost]
    return tuple(gross)


def test_a_click_counts_at_its_own_time_for_the_campaign_of_its_impression(tmp_path: Path) -> None:
    assert list(map(_gross, _expected(tmp_path, _TIMELINE).campaign_stats)) == [
        (0, 10, "c1", 2, 0, 350, 0.0),
        (10, 20, "c1", 0, 1, 0, None),
        (10, 20, "c2", 1, 0, None, 0.0),
        (60, 70, "c1", 0, 2, 0, None),
    ]


def test_windows_that_overlap_share_events(tmp_path: Path) -> None:
    timeline = "12:07:00 imp i1 u1 c1 cost=5\n12:12:00 clk k1 u1 ->i1"
    stats = _expected(tmp_path, timeline, campaign_stats={"window": "10min", "slide": "5min"}).campaign_stats
    assert list(map(_gross, stats)) == [
        (0, 10, "c1", 1, 0, 5, 0.0),
        (5, 15, "c1", 1, 1, 5, 1.0),
        (10, 20, "c1", 0, 1, 0, None),
    ]


@pytest.mark.parametrize(
    ("output", "due"),
    [
        ("full", [(0, 20, 3, 6.0, False), (10, 30, 3, 5.0, False), (10, 30, 3, 5.0, True), (100, 100, 1, 9.0, True)]),
        (
            "every",
            [
                (0, 0, 1, 0.0, False),
                (0, 10, 2, 0.0, False),
                (0, 20, 3, 6.0, False),
                (10, 30, 3, 5.0, False),
                (10, 30, 3, 5.0, True),
                (100, 100, 1, 0.0, False),
                (100, 100, 1, 9.0, True),
            ],
        ),
    ],
)
def test_the_mean_is_of_the_last_values(output: str, due: list[tuple[Any, ...]], tmp_path: Path) -> None:
    costs = ((0, 4), (10, 6), (20, 8), (30, 1), (100, 9))
    timeline = "\n".join(f"{12 + m // 60}:{m % 60:02}:00 imp i{m} u1 c1 cost={cost}" for m, cost in costs)
    averages = _expected(tmp_path, timeline, moving_average={"size": "3", "output": output}).moving_averages
    assert [_minutes(row) for row in averages] == [("c1", "cost_micros", *row) for row in due]


def test_a_user_is_online_active_and_inactive(tmp_path: Path) -> None:
    timeline = "\n".join(
        f"{time} act a{number} u1"
        for number, time in enumerate(("12:00:00", "12:20:00", "13:20:00", "14:20:00.000001"))
    )
    status = [_minutes(row)[1:] for row in _expected(tmp_path, timeline).user_status]
    assert sorted(status, key=lambda row: (row[1], row[0])) == [
        ("online", 0),
        ("active", 20),
        ("inactive", 140),
        ("online", pytest.approx(140, abs=1e-4)),
        ("inactive", pytest.approx(200, abs=1e-4)),
    ]


def test_a_conversion_keeps_nobody_online(tmp_path: Path) -> None:
    timeline = (
        "12:00:00 act a1 u1\n12:30:00 cnv p1 u1 purchase 5 EUR\n13:10:00 act a2 u1\n13:00:00 cnv p2 u2 signup 0 EUR"
    )
    status = [_minutes(row)[1:] for row in _expected(tmp_path, timeline).user_status]
    assert sorted(status, key=lambda row: (row[1], row[0])) == [
        ("online", 0),
        ("inactive", 60),
        ("online", 70),
        ("inactive", 130),
    ]


def test_the_values_of_conversions_can_be_averaged_by_currency(tmp_path: Path) -> None:
    timeline = "12:00:00 cnv p1 u1 purchase 5 EUR\n12:01:00 cnv p2 u2 purchase 8 USD\n12:02:00 cnv p3 u3 purchase 7 EUR"
    own = {"key": "currency", "values": "value_micros", "size": "2"}
    averages = _expected(tmp_path, timeline, moving_average=own).moving_averages
    assert [_minutes(row) for row in averages if not row[-1]] == [("EUR", "value_micros", 0, 2, 2, 6.0, False)]
