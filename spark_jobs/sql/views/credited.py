"""The conversions and value that touches are credited with, in SQL: the same for gross and net."""

from spark_jobs.contract.tables import Table


def credited(credits_: Table, paths: Table, *keys: str) -> str:
    """SQL of ``conversions``, ``refunds`` and ``value_micros`` by ``keys``, which are columns of ``credits_``."""
    columns = "".join(f"    c.{key},\n" for key in keys)
    return f"""\
SELECT
{columns}\
    coalesce(sum(weight_ppm) FILTER (revokes IS NULL), 0)::BIGINT / 1e6 AS conversions,
    coalesce(sum(weight_ppm) FILTER (revokes IS NOT NULL), 0)::BIGINT / 1e6 AS refunds,
    sum(credit_micros)::BIGINT AS value_micros
FROM {credits_.name} c JOIN {paths.name} USING (conversion_id, conversion_time, event_date)
GROUP BY ALL"""
