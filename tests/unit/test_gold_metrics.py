"""Metrics of campaigns, sessions and credit, from the feeds and the log."""

import logging
from pathlib import Path

import pytest
from prometheus_client.exposition import generate_latest

from spark_jobs.contract.tables import SESSIONS
from spark_jobs.credit.plan import CreditedCampaign, CreditFeed
from spark_jobs.lake.open import open_lake
from spark_jobs.lake.records import write_record
from spark_jobs.lake.store.files import json_bytes
from spark_jobs.operations.exporter.gold_metrics import MOST_CAMPAIGNS, NO_CAMPAIGN, OTHERS, GoldMetrics
from spark_jobs.places import CREDIT_FEED, FEED
from tests.support.exposed import credited, session, window
from tests.support.written_lakes import NOON, WrittenLake, at


@pytest.fixture
def written(tmp_path: Path) -> WrittenLake:
    """A lake without tables."""
    return WrittenLake(open_lake(str(tmp_path)))


def _told(written: WrittenLake, *windows: dict[str, object]) -> dict[str, float]:
    """The metrics of a lake whose feed has ``windows``."""
    written.lake.files.write(FEED, json_bytes({"windows": windows}))
    return _exported(written)


def _exported(written: WrittenLake) -> dict[str, float]:
    metrics = GoldMetrics(written.lake)
    metrics.refresh(NOON)
    lines = [line for line in generate_latest(metrics).decode().splitlines() if line[0] != "#"]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def _of(told: dict[str, float], figure: str, campaign: str, span: str) -> float | None:
    return told.get(f'adloom_campaign_{figure}{{campaign="{campaign}",span="{span}"}}')


def test_the_newest_window_and_all_of_them_are_told_by_campaign(written: WrittenLake) -> None:
    told = _told(written, window(0, "a", impressions=30), window(10, "a", impressions=50), window(10, "b"))
    assert _of(told, "impressions", "a", "window") == 50
    assert _of(told, "impressions", "a", "feed") == 80
    assert _of(told, "clicks", "a", "feed") == 8
    assert _of(told, "cost_micros", "b", "window") == 500
    assert told['adloom_campaign_span_seconds{span="window"}'] == 600
    assert told['adloom_campaign_span_seconds{span="feed"}'] == 1200
    assert told["adloom_campaign_newest_window_seconds"] == at(20).timestamp()


def test_of_overlapping_windows_each_event_counts_once(written: WrittenLake) -> None:
    """Windows of 10 minutes that slide by 5: those that end with the newest one, or a multiple of 10 before it.

    ::

        0    5    10   15   20   25
        [=skipped=)
             [=counted=)
                  [=skipped=)
                       [=newest==)
    """
    overlapping = [window(start, impressions=10 * (start + 1)) for start in (0, 5, 10, 15)]
    told = _told(written, *overlapping)
    assert _of(told, "impressions", "c", "window") == 160
    assert _of(told, "impressions", "c", "feed") == 60 + 160
    assert told['adloom_campaign_span_seconds{span="feed"}'] == 1200


def test_groups_of_a_campaign_are_added_up(written: WrittenLake) -> None:
    told = _told(written, {**window(0), "country": "DE"}, {**window(0), "country": "FR"})
    assert _of(told, "impressions", "c", "window") == 20


def test_a_cost_that_nobody_knows_is_left_out_and_a_zero_is_not(written: WrittenLake) -> None:
    told = _told(written, window(0, "unknown", cost_micros=None), window(0, "free", cost_micros=0))
    assert _of(told, "cost_micros", "unknown", "window") is None
    assert _of(told, "cost_micros", "free", "window") == 0


def test_beyond_the_largest_campaigns_the_others_are_one(written: WrittenLake) -> None:
    many = [window(0, f"large-{number}", impressions=100) for number in range(MOST_CAMPAIGNS)]
    told = _told(written, *many, window(0, "small-1"), window(0, "small-2"))
    assert _of(told, "impressions", "large-0", "window") == 100
    assert _of(told, "impressions", OTHERS, "window") == 20
    assert _of(told, "impressions", "small-1", "window") is None


def test_sessions_of_today_are_counted_from_the_log(written: WrittenLake) -> None:
    event = {"event_time": NOON, "event_type": "click", "event_id": "a", "event_date": NOON.date()}
    yesterday = {**event, "event_date": at(-24 * 60).date()}
    assert "adloom_sessions_today" not in _exported(written), "no table yet"
    added = written.commit(SESSIONS, [session("a", event), session("b", event), session("old", yesterday)])
    assert _exported(written)["adloom_sessions_today"] == 2
    written.commit(SESSIONS, removed=added)
    assert _exported(written)["adloom_sessions_today"] == 0


def test_credit_is_told_by_campaign_model_and_currency(written: WrittenLake) -> None:
    told = _credited(
        written,
        credited("a", conversions=1.25, value_micros=300),
        credited("a", "last_click", conversions=2, value_micros=500),
        credited(None, conversions=0.75, value_micros=200),
        credited("a", value_micros=0).model_copy(update={"currency": None}),
    )
    assert told == {
        _of_credit("conversions", "a", "linear"): 1.25,
        _of_credit("conversions", "a", "last_click"): 2,
        _of_credit("conversions", NO_CAMPAIGN, "linear"): 0.75,
        _of_credit("conversions", "a", "linear", ""): 2.5,
        _of_credit("value_micros", "a", "linear"): 300,
        _of_credit("value_micros", "a", "last_click"): 500,
        _of_credit("value_micros", NO_CAMPAIGN, "linear"): 200,
        _of_credit("value_micros", "a", "linear", ""): 0,
        "adloom_credit_until_seconds": NOON.timestamp(),
    }


def test_beyond_the_largest_campaigns_the_credit_of_the_others_is_one(written: WrittenLake) -> None:
    many = [credited(f"large-{number}", conversions=9) for number in range(MOST_CAMPAIGNS)]
    told = _credited(written, *many, credited("small-1"), credited("small-2"), credited(None, conversions=0.5))
    assert told[_of_credit("conversions", "large-0", "linear")] == 9
    assert told[_of_credit("conversions", OTHERS, "linear")] == 5
    assert told[_of_credit("value_micros", OTHERS, "linear")] == 1400
    assert told[_of_credit("conversions", NO_CAMPAIGN, "linear")] == 0.5
    assert _of_credit("conversions", "small-1", "linear") not in told


def _credited(written: WrittenLake, *rows: CreditedCampaign) -> dict[str, float]:
    """The metrics of a lake whose feed of credit has ``rows``."""
    write_record(written.lake, CREDIT_FEED, CreditFeed(run=1, until=NOON, credited=rows))
    return _exported(written)


def _of_credit(figure: str, campaign: str, model: str, currency: str = "EUR") -> str:
    return f'adloom_credit_{figure}{{campaign="{campaign}",currency="{currency}",model="{model}"}}'


def test_what_cannot_be_read_is_logged_and_nothing_old_is_told(
    written: WrittenLake, caplog: pytest.LogCaptureFixture
) -> None:
    metrics = GoldMetrics(written.lake)
    written.lake.files.write(FEED, json_bytes({"windows": [window(0)]}))
    metrics.refresh(NOON)
    assert generate_latest(metrics)
    written.lake.files.write(FEED, b'{"windows": [{"campaign_id": "c"}]}')
    with caplog.at_level(logging.WARNING):
        metrics.refresh(NOON)
    assert generate_latest(metrics) == b""
    assert f"{FEED} is not a feed of campaign_stats: KeyError('window_start'); remove it" in caplog.text
