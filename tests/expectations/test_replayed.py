"""The page of a replay: what differs, why, and what it is worth."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from expectations.replayed.page import render
from spark_jobs.contracts.replay import CampaignDifference, Replay, ReplayedTable
from spark_jobs.jobs.replay import Replayed
from spark_jobs.jobs.replay_report import Differing
from spark_jobs.runtime.lakes import open_lake

_DAY = datetime(2026, 3, 1, tzinfo=UTC)


def _found(**counts: int) -> Replayed:
    campaigns = {"<b>c1</b>": CampaignDifference(impressions=0, clicks=-2, cost_micros=-1_500_000)}
    part = ReplayedTable(
        version=3, watermark_ms=0, same=1234, campaigns=campaigns, **{"late": 0, "open": 0, "unknown": 0, **counts}
    )
    report = Replay(begin=_DAY, end=_DAY + timedelta(days=1), decided_at=_DAY, tables={"campaign_stats": part})
    key = '{"window_end": "12:10"}'
    before, after = '{"campaign_id": "<i>c1", "clicks": 5}', '{"campaign_id": "<i>c1", "clicks": 3}'
    rows = [
        Differing(False, "update", "applied", key, before, after),
        Differing(True, "insert", "frozen", key, None, after),
    ]
    return Replayed(report, None, {"campaign_stats": rows})


@pytest.mark.parametrize(
    ("counts", "verdict"),
    [
        ({}, "Every row is as it should be"),
        ({"late": 2}, "Not settled yet"),
        ({"open": 2}, "Not settled yet"),
        ({"late": 1, "unknown": 1}, "Rows differ, and nothing explains why"),
    ],
)
def test_the_verdict_is_that_of_the_worst_cause(counts: dict[str, int], verdict: str, tmp_path: Path) -> None:
    assert verdict in render(open_lake(str(tmp_path / "lake")), _found(**counts))


def test_rows_are_shown_as_they_are_and_as_they_should_be(tmp_path: Path) -> None:
    page = render(open_lake(str(tmp_path / "lake")), _found(unknown=1, late=1))
    assert "window_end = 12:10" in page
    assert "clicks = 5" in page
    assert "clicks = 3" in page
    assert "missing, frozen" in page
    assert "1,234" in page
    assert "\N{MINUS SIGN}1.50" in page
    assert "&lt;b&gt;c1" in page
    assert "<b>c1" not in page
    assert "<i>c1" not in page
