"""Texts that come with the data, in charts."""

import pytest

from expectations import charts


@pytest.mark.parametrize("character", ["\x00", "\x1b", "\ufffe", "\u202e"])
def test_a_character_that_svg_cannot_have_is_replaced(character: str) -> None:
    # Such a campaign in one event ended the process that drew the chart.
    rows = [{"time": f"2026-03-01T1{hour}:00:00Z", "campaign": f"spring{character}", "clicks": hour} for hour in (0, 1)]
    drawn = charts.svg(charts.lines(rows, "clicks", "clicks", "s"))
    assert character not in drawn
    assert "spring\ufffd" in drawn
