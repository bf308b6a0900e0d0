"""The conversions and value that touches are credited with, in SQL: the same for gross and net."""

from spark_jobs.config.choices import CreditModel
from spark_jobs.contract.tables import Table

_MODELS = ", ".join(f"'{model.value}'" for model in CreditModel)
_DAY = "day_of(event_date, conversion_time) AS event_date"
UNSOLD = f"""\
-- Campaigns that have shown ads and are credited with nothing.
SELECT
    campaign_id, model, NULL::VARCHAR AS currency,
    0::DOUBLE AS conversions, 0::DOUBLE AS refunds, 0::BIGINT AS value_micros
FROM (SELECT DISTINCT campaign_id FROM daily_campaigns) CROSS JOIN (
    SELECT DISTINCT model FROM daily_credits
    UNION ALL SELECT unnest([{_MODELS}]) WHERE NOT EXISTS (FROM daily_credits)
) ANTI JOIN daily_credits USING (campaign_id, model)"""
"""SQL of ``campaign_id``, ``model``, ``currency`` and the columns of :func:`credited`."""


def credited(credits_: Table, paths: Table, *keys: str) -> str:
    """SQL of ``conversions``, ``refunds`` and ``value_micros`` by ``keys``, columns of ``credits_``."""
    columns = "".join(f"    {_DAY if key == 'event_date' else f'c.{key}'},\n" for key in keys)
    return f"""\
SELECT
{columns}\
    coalesce(sum(weight_ppm) FILTER (revokes IS NULL), 0)::BIGINT / 1e6 AS conversions,
    coalesce(sum(weight_ppm) FILTER (revokes IS NOT NULL), 0)::BIGINT / 1e6 AS refunds,
    sum(credit_micros)::BIGINT AS value_micros
FROM {credits_.name} c JOIN {paths.name} USING (conversion_id, conversion_time, event_date)
GROUP BY ALL"""
