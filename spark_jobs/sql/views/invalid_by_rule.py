"""The traffic that each rule takes for invalid, and whether that may be wrong."""

from spark_jobs.sql.views.description import View

VIEW = View(
    "invalid_by_rule",
    "One row per rule and version that marks anything: what it marks, what that costs, and a hint at marks that are "
    "wrong. People convert and bots do not: if users whose events a rule marks convert about as often as all users, it "
    "marks people. An event that several rules mark is in the row of each.",
    (
        ("rule_id", "id of the rule"),
        ("rule_version", "version of the rule"),
        ("class", "givt or sivt"),
        ("impressions", "impressions that it marks"),
        ("clicks", "clicks that it marks"),
        ("conversions", "conversions that it marks"),
        ("activities", "activity events that it marks"),
        ("cost_micros", "cost of the impressions in gold that it marks; null if none has a cost"),
        ("invalid_clicks", "clicks in gold that it marks, or whose impression it marks"),
        ("users", "different users of the events that it marks, late ones aside"),
        ("converting_ppm", "those of them with a conversion that no rule marks, in a million of them"),
        ("all_converting_ppm", "the same of all users of the lake"),
    ),
    """
WITH newest AS (
    -- Of each mark, the newest row counts.
    SELECT * FROM marks
    QUALIFY row_number() OVER (
        PARTITION BY event_type, event_id, event_time, rule_id, rule_version ORDER BY marked_at DESC) = 1
), active AS (
    SELECT event_type, event_id, event_time, rule_id, rule_version, class FROM newest WHERE NOT revoked
), marked AS (
    SELECT DISTINCT event_type, event_id, event_time FROM active
), buyers AS (
    SELECT DISTINCT user_id
    FROM silver ANTI JOIN marked USING (event_type, event_id, event_time)
    WHERE event_type = 'conversion' AND revokes IS NULL AND user_id IS NOT NULL
), everybody AS (
    SELECT count(*) AS users, count(buyers.user_id) AS converting
    FROM (SELECT DISTINCT user_id FROM silver WHERE user_id IS NOT NULL) known
    LEFT JOIN buyers ON buyers.user_id = known.user_id
), counted AS (
    SELECT
        rule_id, rule_version, class,
        count(*) FILTER (event_type = 'impression') AS impressions,
        count(*) FILTER (event_type = 'click') AS clicks,
        count(*) FILTER (event_type = 'conversion') AS conversions,
        count(*) FILTER (event_type = 'activity') AS activities
    FROM active
    GROUP BY ALL
), suspects AS (
    SELECT DISTINCT rule_id, rule_version, user_id
    FROM active JOIN silver USING (event_type, event_id, event_time)
    WHERE user_id IS NOT NULL
), suspected AS (
    SELECT rule_id, rule_version, count(*) AS users, count(buyers.user_id) AS converting
    FROM suspects LEFT JOIN buyers ON buyers.user_id = suspects.user_id
    GROUP BY rule_id, rule_version
), pairs AS (
    SELECT impression_id, impression_time, cost_micros, click_id, click_time FROM attributions
    WHERE status <> 'orphan_click'
), costs AS (
    SELECT rule_id, rule_version, sum(cost_micros)::BIGINT AS cost_micros
    FROM active JOIN (
        SELECT impression_id AS event_id, impression_time AS event_time, any_value(cost_micros) AS cost_micros
        FROM pairs GROUP BY ALL
    ) USING (event_id, event_time)
    WHERE event_type = 'impression'
    GROUP BY ALL
), touched AS (
    -- A union, so that a click that is marked itself and by its impression is there once.
    SELECT rule_id, rule_version, click_id, click_time
    FROM pairs JOIN active ON event_type = 'click' AND event_id = click_id AND event_time = click_time
    UNION
    SELECT rule_id, rule_version, click_id, click_time
    FROM pairs JOIN active ON event_type = 'impression' AND event_id = impression_id AND event_time = impression_time
    WHERE click_id IS NOT NULL
), lost AS (
    SELECT rule_id, rule_version, count(*) AS invalid_clicks FROM touched GROUP BY ALL
)
SELECT
    rule_id,
    rule_version,
    class,
    impressions,
    clicks,
    conversions,
    activities,
    cost_micros,
    coalesce(invalid_clicks, 0) AS invalid_clicks,
    coalesce(suspected.users, 0) AS users,
    suspected.converting * 1000000 // nullif(suspected.users, 0) AS converting_ppm,
    everybody.converting * 1000000 // nullif(everybody.users, 0) AS all_converting_ppm
FROM counted
LEFT JOIN costs USING (rule_id, rule_version)
LEFT JOIN lost USING (rule_id, rule_version)
LEFT JOIN suspected USING (rule_id, rule_version)
CROSS JOIN everybody
ORDER BY rule_id, rule_version
""",
)
