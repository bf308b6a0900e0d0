"""The page of a replay: what differs, why, and what it is worth."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from expectations.landing import write_landing_page
from expectations.replayed.latest import latest_replays
from expectations.replayed.page import render
from expectations.results import ValidationResult
from spark_jobs.config.durations import Window
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from spark_jobs.places import REPORTS
from spark_jobs.restatements.replay import Replayed
from spark_jobs.restatements.replay_model import REPLAYS, CampaignDifference, Replay, ReplayedTable, replay_key
from spark_jobs.restatements.replay_report import Differing

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


def _keep(lake: Lake, begin: datetime, end: datetime, minute: int, **counts: int) -> None:
    report = _found(**counts).report.model_copy(
        update={"begin": begin, "end": end, "decided_at": _DAY + timedelta(days=9, minutes=minute)}
    )
    key = replay_key(Window(begin, end))
    lake.files.write(key, report.model_dump_json().encode())
    written = (_DAY + timedelta(days=9, minutes=minute)).timestamp()
    os.utime(lake.path / key, (written, written))


def test_data_quality_lists_the_replays_made_last_with_what_they_found_and_links_to_their_pages(
    tmp_path: Path,
) -> None:
    lake = open_lake(str(tmp_path / "lake"))
    next_day, noon = _DAY + timedelta(days=1), _DAY + timedelta(hours=12)
    _keep(lake, _DAY, next_day, minute=2)
    _keep(lake, next_day, next_day + timedelta(days=1), minute=3, unknown=1, late=2)
    _keep(lake, _DAY, noon, minute=1, open=4)
    (lake.path / REPLAYS / "damaged.json").write_text("{")
    assert [(one.window, one.state, *one.counts.values()) for one in latest_replays(lake)] == [
        ("2 March 2026", "unknown", 1234, 2, 0, 1),
        ("1 March 2026", "agrees", 1234, 0, 0, 0),
        ("1 Mar 2026, 00:00 to 1 Mar 2026, 12:00", "differs", 1234, 0, 4, 0),
    ]
    write_landing_page(lake, ValidationResult("_reports/index.html", ()), _DAY)
    page = (lake.path / REPORTS / "index.html").read_text()
    assert page.count("Report →") == 3
    assert f'href="replays/{Window(_DAY, next_day).name}.html"' in page


def test_only_the_newest_reports_are_read(tmp_path: Path) -> None:
    lake = open_lake(str(tmp_path / "lake"))
    for number in range(4):
        _keep(lake, _DAY, _DAY + timedelta(hours=number + 1), minute=number)
    assert [one.report.end.hour for one in latest_replays(lake, most=2)] == [4, 3]
