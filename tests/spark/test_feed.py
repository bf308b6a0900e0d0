"""The feed of campaign statistics says what the table says, whatever was written to the table and how."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_jobs.config.choices import StatsOutput
from spark_jobs.config.durations import EPOCH, milliseconds
from spark_jobs.contract.tables import CAMPAIGN_STATS
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.notes import CommitNote
from spark_jobs.lake.open import open_lake
from spark_jobs.places import FEED
from spark_jobs.queries.campaign_stats.output import Feed, WindowsWriter, final_before_ms, replace_open_windows
from spark_jobs.queries.campaign_stats.query import NAME as CAMPAIGN_STATS_QUERY
from tests.support.feed import assert_feed_equals_table
from tests.support.lakes import read_table

pytestmark = pytest.mark.derived

_NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
_WINDOW, _LENGTH, _REACH = timedelta(minutes=10), timedelta(hours=1), timedelta(hours=1)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return open_lake(str(tmp_path / "lake"))


def _rows(spark: SparkSession, *windows: tuple[int, str, int, int]) -> DataFrame:
    """Windows as minutes after noon, campaign, impressions, clicks."""
    rows = [
        (
            start := _NOON + timedelta(minutes=minute),
            start + _WINDOW,
            campaign,
            shown,
            clicks,
            5 * shown,
            _rate(shown, clicks),
            None,
            None,
            None,
        )
        for minute, campaign, shown, clicks in windows
    ]
    return spark.createDataFrame(rows, CAMPAIGN_STATS.ddl).coalesce(1)


def _rate(shown: int, clicks: int) -> float | None:
    return clicks / shown if shown else None


def _note(batch: int, watermark: datetime = EPOCH) -> CommitNote:
    watermark_ms = milliseconds(watermark - EPOCH)
    return CommitNote(
        writer="query", batch=batch, query=CAMPAIGN_STATS_QUERY, watermark_ms=watermark_ms, reached=[batch]
    )


def _write(lake: Lake, rows: DataFrame, batch: int, output: StatsOutput, since: datetime = EPOCH) -> None:
    writer = WindowsWriter(output, _REACH, since_ms=milliseconds(since - EPOCH))
    writer(rows, lake, CAMPAIGN_STATS, _note(batch))
    feed = Feed(lake, _LENGTH)
    assert not feed.has(_note(batch))
    feed.write(rows, _note(batch))
    assert_feed_equals_table(lake, _LENGTH)


def test_windows_come_into_the_feed_and_leave_it(spark: SparkSession, lake: Lake) -> None:
    _write(lake, _rows(spark, (0, "c1", 4, 1), (0, "c2", 0, 1)), 0, StatsOutput.APPEND)
    _write(lake, _rows(spark, (10, "c1", 2, 0), (20, "c1", 7, 7)), 1, StatsOutput.APPEND)
    _write(lake, _rows(spark, (60, "c2", 1, 0)), 2, StatsOutput.APPEND)
    first = lake.files.read(FEED) or b""
    assert first.count(b"window_start") == 3, "the window that ends an hour before the newest has left"
    _write(lake, _rows(spark), 3, StatsOutput.APPEND)
    assert lake.files.read(FEED) == first


def test_windows_that_are_updated(spark: SparkSession, lake: Lake) -> None:
    _write(lake, _rows(spark, (0, "c1", 1, 0), (0, "c1", 1, 0), (90, "c1", 1, 0)), 0, StatsOutput.UPDATE)
    _write(lake, _rows(spark, (90, "c1", 0, 1), (0, "c1", 3, 0)), 1, StatsOutput.UPDATE)
    _write(lake, _rows(spark, (0, "c1", 1, 1)), 2, StatsOutput.UPDATE)
    assert [row[3:5] for row in sorted(read_table(lake, CAMPAIGN_STATS))] == [(6, 1), (1, 1)]


@pytest.mark.parametrize("output", StatsOutput)
def test_a_batch_that_is_written_again_changes_neither(output: StatsOutput, spark: SparkSession, lake: Lake) -> None:
    for _attempt in range(2):
        _write(lake, _rows(spark, (0, "c1", 1, 0)), 0, output)
    assert len(read_table(lake, CAMPAIGN_STATS)) == 1


@pytest.mark.parametrize("output", StatsOutput)
def test_windows_that_were_final_before_a_reset_are_in_neither_a_second_time(
    output: StatsOutput, spark: SparkSession, lake: Lake
) -> None:
    _write(lake, _rows(spark, (0, "c1", 4, 1), (10, "c1", 5, 0)), 0, output)
    since = _NOON + 2 * _WINDOW
    _write(lake, _rows(spark, (10, "c1", 5, 0), (20, "c1", 6, 0)), 1, output, since)
    assert [row[3] for row in sorted(read_table(lake, CAMPAIGN_STATS))] == [4, 5, 6]


@pytest.mark.slow
def test_a_reset_replaces_open_windows_in_both(spark: SparkSession, lake: Lake) -> None:
    _write(lake, _rows(spark, (0, "c1", 4, 1), (10, "c1", 5, 0), (20, "c2", 6, 0)), 0, StatsOutput.UPDATE)
    final = CommitNote(
        writer="reset", batch=0, query=CAMPAIGN_STATS_QUERY, final_before_ms=milliseconds(_NOON + _WINDOW - EPOCH)
    )
    replace_open_windows(_rows(spark, (0, "c1", 9, 9), (10, "c1", 2, 0), (10, "c1", 1, 1)), lake, CAMPAIGN_STATS, final)
    Feed(lake, _LENGTH).refresh(spark)
    assert [row[2:5] for row in sorted(read_table(lake, CAMPAIGN_STATS))] == [("c1", 4, 1), ("c1", 3, 1)]
    assert_feed_equals_table(lake, _LENGTH)
    replace_open_windows(_rows(spark), lake, CAMPAIGN_STATS, final)
    Feed(lake, _LENGTH).refresh(spark)
    assert_feed_equals_table(lake, _LENGTH)
    replace_open_windows(_rows(spark), lake, CAMPAIGN_STATS, final.model_copy(update={"final_before_ms": 0}))
    Feed(lake, _LENGTH).refresh(spark)
    assert_feed_equals_table(lake, _LENGTH)
    assert read_table(lake, CAMPAIGN_STATS) == []


def test_what_is_final_never_becomes_open_again() -> None:
    note = _note(3, _NOON)
    assert EPOCH + timedelta(milliseconds=final_before_ms(note, _REACH)) == _NOON - _REACH - timedelta(milliseconds=2)
    later = note.model_copy(update={"final_before_ms": milliseconds(_NOON - EPOCH)})
    assert final_before_ms(later, _REACH) == milliseconds(_NOON - EPOCH)
