"""How far users get, from an impression to a session with a click."""

from spark_jobs.sql.views.description import View

VIEW = View(
    "funnel",
    "One row per date, from everything shown to what came of it. Impressions and clicks belong to the date of the "
    "impression, orphan clicks to their own, sessions to the date on which they start.",
    (
        ("event_date", "the date, in the time zone of days"),
        ("impressions", "impressions, each once"),
        ("users", "different users who had an impression"),
        ("clicked_impressions", "impressions that were clicked"),
        ("clicks", "clicks on them"),
        ("users_who_clicked", "different users of clicked impressions"),
        ("orphan_clicks", "clicks whose impression never came"),
        ("sessions", "sessions of users"),
        ("sessions_with_click", "those with a click"),
        ("click_rate", "clicked_impressions / impressions"),
        ("session_click_rate", "sessions_with_click / sessions"),
    ),
    """
WITH shown AS (
    SELECT
        day_of(event_date, coalesce(impression_time, click_time)) AS day,
        count(DISTINCT impression_id) FILTER (status <> 'orphan_click') AS impressions,
        count(DISTINCT user_id) FILTER (status <> 'orphan_click') AS users,
        count(DISTINCT impression_id) FILTER (status = 'clicked') AS clicked_impressions,
        count(*) FILTER (status = 'clicked') AS clicks,
        count(DISTINCT user_id) FILTER (status = 'clicked') AS users_who_clicked,
        count(*) FILTER (status = 'orphan_click') AS orphan_clicks
    FROM attributions
    GROUP BY day
), visited AS (
    SELECT
        day_of(event_date, session_start) AS day,
        count(*) AS sessions, count(*) FILTER (click_count > 0) AS sessions_with_click
    FROM sessions
    GROUP BY day
)
SELECT
    day AS event_date,
    coalesce(impressions, 0) AS impressions,
    coalesce(users, 0) AS users,
    coalesce(clicked_impressions, 0) AS clicked_impressions,
    coalesce(clicks, 0) AS clicks,
    coalesce(users_who_clicked, 0) AS users_who_clicked,
    coalesce(orphan_clicks, 0) AS orphan_clicks,
    coalesce(sessions, 0) AS sessions,
    coalesce(sessions_with_click, 0) AS sessions_with_click,
    clicked_impressions / nullif(impressions, 0) AS click_rate,
    sessions_with_click / nullif(sessions, 0) AS session_click_rate
FROM shown FULL JOIN visited USING (day)
ORDER BY day
""",
)
