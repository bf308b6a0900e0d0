"""The cost of each campaign, and what it brings."""

from spark_jobs.sql.views.credited import UNSOLD
from spark_jobs.sql.views.description import View

VIEW = View(
    "campaign_returns",
    "One row per campaign, model and currency: spend, conversions, value, and what follows from them. Spend is that of "
    "all its impressions, so a campaign that still runs has spent for conversions to come. A campaign that is credited "
    "with nothing has a row for each model, without a currency.",
    (
        ("campaign_id", "the campaign"),
        ("model", "how the touches of a conversion share its value"),
        ("currency", "of value_micros; null where nothing has a value"),
        ("cost_micros", "cost of the impressions; the same in each row of the campaign, so it cannot be added"),
        ("conversions", "conversions, each by the share that the campaign has in it, less refunds"),
        ("value_micros", "what the campaign is credited with, less refunds"),
        ("cpa_micros", "cost per conversion: cost_micros / conversions of all currencies"),
        ("roas", "return on ad spend: value_micros / cost_micros, which says something if both are of one currency"),
    ),
    f"""
WITH spent AS (
    SELECT campaign_id, sum(cost_micros)::BIGINT AS cost_micros FROM daily_campaigns GROUP BY campaign_id
), credited AS (
    SELECT
        campaign_id, model, currency,
        sum(conversions) - sum(refunds) AS conversions, sum(value_micros)::BIGINT AS value_micros
    FROM (
        SELECT * EXCLUDE (event_date) FROM daily_credits
        UNION ALL BY NAME
        {UNSOLD}
    )
    WHERE campaign_id IS NOT NULL
    GROUP BY ALL
)
SELECT
    campaign_id,
    model,
    currency,
    cost_micros,
    conversions,
    value_micros,
    round(cost_micros / nullif(sum(conversions) OVER (PARTITION BY campaign_id, model), 0))::BIGINT AS cpa_micros,
    value_micros / nullif(cost_micros, 0) AS roas
FROM credited LEFT JOIN spent USING (campaign_id)
ORDER BY campaign_id, model, currency
""",
)
