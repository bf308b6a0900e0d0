"""The returns of each campaign, gross and net of invalid traffic."""

from spark_jobs.contract.tables import CREDITS, NET_CREDITS, NET_PATHS, PATHS
from spark_jobs.sql.views.credited import UNSOLD, credited
from spark_jobs.sql.views.description import View

_KEYS = ("campaign_id", "model", "currency")


def _sums(is_net: str) -> str:
    names = (("conversions", "conversions - refunds", "DOUBLE"), ("value_micros", "value_micros", "BIGINT"))
    prefix = "net_" if is_net == "is_net" else ""
    return ",\n    ".join(
        f"coalesce(sum({value}) FILTER ({is_net}), 0)::{kind} AS {prefix}{name}" for name, value, kind in names
    )


VIEW = View(
    "net_returns",
    "One row per campaign, model and currency: what it is credited with, of all events and without those that are "
    "marked as invalid traffic. Where a marked touch is left out, another one gets its credit, so net can be more than "
    "gross.",
    (
        ("campaign_id", "the campaign; null: conversions without a touch"),
        ("model", "how the touches of a conversion share its value"),
        ("currency", "of the values; null where nothing has a value"),
        ("conversions", "conversions, each by the share that the campaign has in it, less refunds"),
        ("value_micros", "what the campaign is credited with, less refunds, in millionths of the currency"),
        ("net_conversions", "conversions, without marked events"),
        ("net_value_micros", "what the campaign is credited with, without marked events"),
    ),
    f"""
WITH gross AS (
{credited(CREDITS, PATHS, *_KEYS)}
), net AS (
{credited(NET_CREDITS, NET_PATHS, *_KEYS)}
), unsold AS (
{UNSOLD}
), together AS (
    SELECT *, false AS is_net FROM gross UNION ALL SELECT *, true AS is_net FROM net
    UNION ALL BY NAME SELECT *, false AS is_net FROM unsold
)
SELECT
    campaign_id,
    model,
    currency,
    {_sums("NOT is_net")},
    {_sums("is_net")}
FROM together
GROUP BY campaign_id, model, currency
ORDER BY campaign_id, model, currency
""",
)
