"""The feed of campaign statistics, compared with its table."""

import json
from datetime import datetime, timedelta

from spark_jobs.contract.tables import CAMPAIGN_STATS
from spark_jobs.lake.layout import Lake
from spark_jobs.places import FEED
from tests.support.lakes import rows_by_name


def assert_feed_equals_table(lake: Lake, length: timedelta) -> None:
    """The feed holds just the rows of the table that end less than ``length`` before its newest."""
    rows = rows_by_name(lake, CAMPAIGN_STATS)
    last = max((row["window_end"] for row in rows), default=datetime.min)  # noqa: DTZ901 naive means UTC throughout
    newest = [row for row in rows if row["window_end"] > last - length]
    text = lake.files.read(FEED)
    assert text is not None
    feed = [{name: window[name] for name in CAMPAIGN_STATS.column_names} for window in json.loads(text)["windows"]]
    for row in newest:
        row |= {name: row[name].isoformat() + "Z" for name in ("window_start", "window_end")}
    assert feed == sorted(newest, key=lambda row: (row["window_start"], row["window_end"], row["campaign_id"]))
