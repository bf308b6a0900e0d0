"""The points behind the charts: the last hour in detail, the last day in outline, nothing older."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from spark_jobs.streams.reports import EACH, QueryReport, Trend

_BEGIN = datetime(2026, 3, 1, tzinfo=UTC)


def _report(at: datetime, **changes: object) -> QueryReport:
    report = QueryReport(job="deduplicate", query="ingest", version="1", process_id=7, started_at=_BEGIN, updated_at=at)
    return report.model_copy(update=changes)


def _after(steps: list[int]) -> Trend:
    trend, now = Trend(), _BEGIN
    for seconds in steps:
        now += timedelta(seconds=seconds)
        if trend.is_due(now):
            trend = trend.after(_report(now))
    return trend


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(min_value=0, max_value=4000), min_size=1, max_size=200))
def test_points_are_in_order_apart_and_at_most_a_day_old(steps: list[int]) -> None:
    points = _after(steps).points
    newest = points[-1].at
    for before, after in pairwise(points):
        assert after.at - before.at >= EACH
    assert newest - points[0].at <= timedelta(days=1)


def test_two_days_of_batches_leaves_an_hour_in_detail_and_a_day_in_outline() -> None:
    points = _after([10] * 6 * 60 * 24 * 2).points
    newest = points[-1].at
    fine = [point for point in points if newest - point.at <= timedelta(hours=1)]
    coarse = [point for point in points if newest - point.at > timedelta(hours=1)]
    assert len(fine) == 60 * 3 + 1, "of batches 10 s apart each second one"
    assert 200 <= len(coarse) <= 23 * 12 + 1
    assert all(after.at - before.at >= timedelta(minutes=5) for before, after in pairwise(coarse))
    assert newest - points[0].at > timedelta(hours=23)


def test_a_point_has_the_figures_of_the_report() -> None:
    report = _report(_BEGIN, input_rows_per_s=12.34, processed_rows_per_s=5.0, batch_ms=1500, state_rows=9, late_rows=2)
    (point,) = Trend().after(report).points
    assert (point.input_rows_per_s, point.processed_rows_per_s, point.batch_s) == (12.3, 5.0, 1.5)
    assert (point.watermark_lag_s, point.state_rows, point.late_rows) == (None, 9, 2)


def test_a_trend_reads_back_as_it_was_written() -> None:
    trend = _after([20, 20, 400])
    assert Trend.model_validate_json(trend.model_dump_json()) == trend
