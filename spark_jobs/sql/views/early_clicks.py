"""Clicks that come a moment before their impression."""

from spark_jobs.sql.views.description import View

VIEW = View(
    "early_clicks",
    "One row per orphan click whose impression has a time up to a minute after it: two clocks differ, or an impression "
    "counts from when it was in view. Many of them are a reason for `attribute.tolerance`.",
    (
        ("event_date", "the date (UTC) of the click"),
        ("click_id", "the click"),
        ("click_time", "its time"),
        ("impression_id", "the impression that it names"),
        ("impression_time", "its time"),
        ("campaign_id", "its campaign"),
        ("early_ms", "impression_time - click_time in milliseconds"),
    ),
    """
SELECT DISTINCT
    c.event_date, c.click_id, c.click_time, c.impression_id, i.impression_time, i.campaign_id,
    epoch_ms(i.impression_time) - epoch_ms(c.click_time) AS early_ms
FROM attributions c JOIN attributions i USING (impression_id)
WHERE
    c.status = 'orphan_click' AND i.status <> 'orphan_click'
    AND i.impression_time > c.click_time AND i.impression_time <= c.click_time + INTERVAL 1 MINUTE
ORDER BY ALL
""",
)
