"""The figures of each campaign for each day."""

from spark_jobs.sql.views.description import View

VIEW = View(
    "daily_campaigns",
    "One row per date and campaign: impressions of that date, whatever came of them, and what they cost. A click "
    "counts on the date of its impression, also if it came after midnight; `campaign_stats` counts it at its own time.",
    (
        ("event_date", "date of the impressions, in the time zone of days"),
        ("campaign_id", "the campaign"),
        ("impressions", "impressions, each once, however often it was clicked"),
        ("clicked_impressions", "those that were clicked"),
        ("clicks", "their clicks: an impression may have several"),
        ("ctr", "clicks / impressions"),
        ("cost_micros", "cost of the impressions, in micro-units of currency; null if none of them has a cost"),
        ("impressions_without_cost", "impressions that came without a cost, which cost_micros leaves out"),
        ("users", "different users among them; the numbers of two dates or campaigns cannot be added"),
        ("valid_impressions", "impressions that no rule marks as invalid traffic"),
        ("valid_clicks", "clicks that no rule marks, on such impressions"),
        ("valid_cost_micros", "cost of the valid impressions; null if none of them has a cost"),
    ),
    """
WITH impressions AS (
    -- An impression with several clicks has a row for each of them.
    SELECT
        day_of(event_date, impression_time) AS event_date, campaign_id, impression_id,
        count(click_id) AS clicks, any_value(cost_micros) AS cost_micros, any_value(user_id) AS user_id,
        coalesce(bool_or(invalid_impression), false) AS is_invalid,
        count(click_id) FILTER (invalid IS NULL) AS valid_clicks
    FROM attributions
    WHERE status <> 'orphan_click'
    GROUP BY ALL
)
SELECT
    event_date,
    campaign_id,
    count(*) AS impressions,
    count(*) FILTER (clicks > 0) AS clicked_impressions,
    sum(clicks)::BIGINT AS clicks,
    sum(clicks) / count(*) AS ctr,
    sum(cost_micros)::BIGINT AS cost_micros,
    count(*) FILTER (cost_micros IS NULL) AS impressions_without_cost,
    count(DISTINCT user_id) AS users,
    count(*) FILTER (NOT is_invalid) AS valid_impressions,
    sum(valid_clicks)::BIGINT AS valid_clicks,
    (sum(cost_micros) FILTER (NOT is_invalid))::BIGINT AS valid_cost_micros
FROM impressions
GROUP BY event_date, campaign_id
ORDER BY event_date, campaign_id
""",
)
