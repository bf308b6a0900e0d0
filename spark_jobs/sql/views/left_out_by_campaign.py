"""Value that credit leaves out of campaigns, and why."""

from spark_jobs.sql.views.description import View

VIEW = View(
    "left_out_by_campaign",
    "One row per reason, campaign and currency of conversions whose value is not credited, or not all: repeats of "
    "an order, and refunds that do not fit. Each of them is in `left_out`.",
    (
        ("reason", "repeat, no_conversion, other_currency or more_than_left: see `left_out`"),
        ("campaign_id", "campaign of the last touch of the conversion that counts; null: it has none"),
        ("currency", "ISO 4217 code; null where the value is 0"),
        ("conversions", "how many conversions or refunds"),
        ("value_micros", "the value that is left out, in millionths of the currency; of refunds, negative or zero"),
    ),
    """
SELECT
    reason, campaign_id, currency,
    count(*) AS conversions,
    sum(left_out_micros)::BIGINT AS value_micros
FROM left_out
GROUP BY reason, campaign_id, currency
ORDER BY reason, campaign_id, currency
""",
)
