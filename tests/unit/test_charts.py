"""The chart shapes of the report pages, as the SVG that a browser gets."""

import os
import re
import subprocess
import sys
from typing import Any

import pytest

from expectations import charts

_GOOD, _WARNING, _BROKEN, _EMPTY = "var(--good-bar)", "var(--warn-bar)", "var(--bad)", "var(--soft)"


def _entry(passed: int = 0, warnings: int = 0, critical: int = 0) -> dict[str, Any]:
    return {"at": "2026-03-01T12:00:00+00:00", "passed": passed, "warnings": warnings, "critical": critical, "rows": 9}


def _fills(svg: str) -> list[str]:
    return re.findall(r'aria-roledescription="bar"[^>]* fill="([^"]+)"', svg)


def _heights(svg: str) -> list[float]:
    """The heights of the bars, from the vertical coordinates of their outlines."""
    outlines = re.findall(r'aria-roledescription="bar" d="([^"]+)"', svg)
    points = [[float(y) for y in re.findall(r"[ML][-\d.e]+,([-\d.e]+)", outline)] for outline in outlines]
    return [max(ys) - min(ys) for ys in points]


@pytest.mark.parametrize(
    ("entry", "fills"),
    [
        pytest.param(_entry(passed=10), [_GOOD], id="all met"),
        pytest.param(_entry(passed=9, warnings=1), [_GOOD, _WARNING], id="a warning"),
        pytest.param(_entry(passed=8, warnings=1, critical=1), [_GOOD, _WARNING, _BROKEN], id="a warning and a breach"),
        pytest.param(_entry(critical=3), [_BROKEN], id="all broken"),
        pytest.param(_entry(), [_EMPTY], id="nothing checked"),
    ],
)
def test_a_validation_is_a_bar_with_a_part_for_each_outcome(entry: dict[str, Any], fills: list[str]) -> None:
    assert _fills(charts.svg(charts.validations([entry], 20, (200, 60)))) == fills


def test_one_broken_rule_of_a_thousand_can_still_be_seen() -> None:
    met, broken = _heights(charts.svg(charts.validations([_entry(passed=999, critical=1)], 20, (200, 60))))
    assert broken == pytest.approx(60 / 12, abs=0.1)
    assert met + broken == pytest.approx(60, abs=0.1)


def test_a_bar_is_never_taller_than_the_chart() -> None:
    warning, broken = _heights(charts.svg(charts.validations([_entry(warnings=1, critical=99)], 20, (200, 60))))
    assert warning > 4
    assert warning + broken == pytest.approx(60, abs=0.1)


def test_a_bar_shows_its_figures_when_pointed_at() -> None:
    svg = charts.svg(charts.validations([_entry(passed=9, critical=1)], 20, (200, 60)))
    assert svg.count("<title>2026-03-01T12:00:00Z: 9 met, 1 broken, 0 warnings, 9 rows</title>") == 2


def test_text_from_the_data_stays_text() -> None:
    drawn = charts.bars([{"what": "<script>alert(1)</script>", "rows": 1}], "what", "rows")
    svg = charts.svg(drawn)
    assert "<script" not in svg
    assert "&lt;script&gt;" in svg


def test_a_funnel_gives_counts_and_shares_of_the_first_step() -> None:
    svg = charts.svg(charts.funnel([("received", 2000), ("ok", 1500)], 500))
    for text in ("received", "2,000", "100.0%", "ok", "1,500", "75.0%"):
        assert f">{text}</text>" in svg


def test_nothing_is_drawn_without_data() -> None:
    assert charts.lines([], "clicks", "clicks", "s") is None
    assert charts.bars([], "what", "rows") is None
    assert charts.funnel([("received", 0), ("ok", 0)], 500) is None
    assert charts.funnel([], 500) is None


_LINES = """
from expectations import charts
rows = [{"time": f"2026-03-01T{hour:02}:00:00Z", "campaign": "c", "clicks": hour} for hour in range(24)]
print(charts.svg(charts.lines(rows, "clicks", "clicks", "s")))
"""


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/New_York"])
def test_times_are_utc_whatever_the_zone_of_the_machine(zone: str) -> None:
    drawn = subprocess.run(
        [sys.executable, "-c", _LINES], capture_output=True, text=True, check=True, env={**os.environ, "TZ": zone}
    ).stdout
    assert ">UTC</text>" in drawn
    times = re.findall(r">(0\d Mar \d\d:\d\d)</text>", drawn)
    assert times[0] == "01 Mar 00:00"
    assert times[-1] == "01 Mar 21:00"
