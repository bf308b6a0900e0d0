"""The models side by side."""

from spark_jobs.config.choices import CreditModel
from spark_jobs.sql.views.credited import UNSOLD
from spark_jobs.sql.views.description import View

_VALUES = ",\n    ".join(
    f"sum(value_micros) FILTER (model = '{model.value}')::BIGINT AS {model.value}" for model in CreditModel
)
VIEW = View(
    "credit_models",
    "One row per campaign and currency, with what each model credits it with: who gains by a change of the model, and "
    "who loses. Each column adds up to the value of all conversions of that currency.",
    (
        ("campaign_id", "the campaign; null: conversions without a touch"),
        ("currency", "of the values; null where nothing has a value"),
        *((model.value, f"value by {model.value}, in millionths of the currency") for model in CreditModel),
    ),
    f"""
SELECT
    campaign_id,
    currency,
    {_VALUES}
FROM (SELECT campaign_id, model, currency, value_micros FROM daily_credits UNION ALL BY NAME {UNSOLD})
GROUP BY campaign_id, currency
ORDER BY campaign_id, currency
""",
)
