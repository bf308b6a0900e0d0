"""Clicks that have a time before that of their impression."""

import duckdb

from spark_jobs.sql.views.early_clicks import VIEW


def test_an_orphan_whose_impression_comes_a_moment_later_is_shown_and_no_other() -> None:
    with duckdb.connect() as sql:
        sql.execute(
            "CREATE TABLE attributions (status VARCHAR, impression_id VARCHAR, impression_time TIMESTAMP, "
            "campaign_id VARCHAR, click_id VARCHAR, click_time TIMESTAMP, event_date DATE)"
        )
        rows = [
            ("unclicked", "i1", "12:00:01", None, None),
            ("orphan_click", "i1", None, "early", "12:00:00.6"),
            ("clicked", "i2", "12:00:01", "second", "12:00:05"),
            ("orphan_click", "i2", None, "first", "12:00:00.9"),
            ("unclicked", "i3", "12:00:01", None, None),
            ("orphan_click", "i3", None, "hours early", "10:00:00"),
            ("unclicked", "i4", "12:00:00", None, None),
            ("orphan_click", "i4", None, "hours late", "15:00:00"),
            ("orphan_click", "i5", None, "of nothing", "12:00:00"),
        ]
        for status, impression, shown, click, clicked in rows:
            times = [time and f"2026-03-01 {time}" for time in (shown, clicked)]
            campaign = None if shown is None else "c"
            row = [status, impression, times[0], campaign, click, times[1], "2026-03-01"]
            sql.execute("INSERT INTO attributions VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        found = sql.execute(f"SELECT click_id, impression_id, campaign_id, early_ms FROM ({VIEW.sql})").fetchall()
    assert found == [("early", "i1", "c", 400), ("first", "i2", "c", 100)]
