"""The credit of each campaign on each day."""

from spark_jobs.contract.tables import CREDITS, PATHS
from spark_jobs.sql.views.credited import credited
from spark_jobs.sql.views.description import View

VIEW = View(
    "daily_credits",
    "One row per date of conversion, campaign, model and currency, from `credits`. Rows of one model and currency can "
    "be added; rows of several models count the same conversions again. Credit of conversions without a touch has no "
    "campaign.",
    (
        ("event_date", "date of the conversions, in the time zone of days"),
        ("campaign_id", "the campaign; null: conversions without a touch"),
        ("model", "how the touches of a conversion share its value"),
        ("currency", "of value_micros; null where nothing has a value"),
        ("conversions", "conversions, each by the share that the campaign has in it; refunds do not count"),
        ("refunds", "refunds, in the same way"),
        ("value_micros", "what the campaign is credited with, less refunds, in millionths of the currency"),
    ),
    f"""
{credited(CREDITS, PATHS, "event_date", "campaign_id", "model", "currency")}
ORDER BY ALL
""",
)
