"""The oracle of credit: paths and credits, computed by DuckDB from rows of conversions and attributions.

It is written from the contract and shares no code with the jobs; which conversions count is decided by
:mod:`tests.support.order_book`. Times are microseconds since 1970.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa

from spark_jobs.config.durations import microseconds
from spark_jobs.config.sections import CreditSettings
from tests.support.order_book import judge_orders

Row = tuple[Any, ...]


class Conversion(NamedTuple):
    """A conversion of silver."""

    event_id: str
    user_id: str | None
    time_us: int
    conversion_type: str
    value_micros: int
    currency: str | None
    order_id: str | None
    revokes: str | None


class Shown(NamedTuple):
    """A row of attributions."""

    status: str
    impression_id: str
    impression_us: int | None
    campaign_id: str | None
    ad_id: str | None
    user_id: str | None
    click_id: str | None
    click_us: int | None


_JUDGED = (*Conversion._fields, "value", "reason", "left_out", "counted_id", "basis_user", "basis_us")


@dataclass(frozen=True)
class Expected:
    """Sorted rows with the columns of the three tables; touches are tuples."""

    paths: list[Row]
    credits: list[Row]
    left_out: list[Row]


_TOUCHES = """
CREATE TABLE touches AS
WITH last_clicks AS (
  SELECT b.event_id AS conversion_id, b.basis_us, a.*
  FROM bases b JOIN attributions a ON a.user_id = b.basis_user
  WHERE a.status = 'clicked' AND a.click_us <= b.basis_us
  QUALIFY row_number() OVER (PARTITION BY b.event_id ORDER BY a.click_us DESC, a.click_id DESC) <= {most_touches}
),
last_views AS (
  SELECT DISTINCT b.event_id AS conversion_id, b.basis_us, a.impression_id, a.campaign_id, a.ad_id, a.impression_us
  FROM bases b JOIN attributions a ON a.user_id = b.basis_user
  WHERE a.status IN ('clicked', 'unclicked') AND a.impression_us <= b.basis_us
  QUALIFY dense_rank() OVER (
    PARTITION BY b.event_id ORDER BY a.impression_us DESC, a.impression_id DESC
  ) <= {most_touches}
),
clicked AS (
  SELECT conversion_id, impression_id, click_id, campaign_id, ad_id, click_us AS us
  FROM last_clicks
  WHERE click_us >= basis_us - {click_lookback}
  QUALIFY row_number() OVER (
    PARTITION BY conversion_id, impression_id ORDER BY click_us DESC, click_id DESC
  ) = 1
),
viewed AS (
  SELECT conversion_id, impression_id, CAST(NULL AS VARCHAR) AS click_id, campaign_id, ad_id, impression_us AS us
  FROM last_views v
  WHERE impression_us >= basis_us - {view_lookback} AND NOT EXISTS (
    SELECT 1 FROM clicked c WHERE c.conversion_id = v.conversion_id AND c.impression_id = v.impression_id
  )
),
together AS (
  SELECT *, 'click' AS kind FROM clicked
  UNION ALL
  SELECT *, 'view' AS kind FROM viewed v
  WHERE '{views}' = 'always' OR (
    '{views}' = 'fallback' AND NOT EXISTS (SELECT 1 FROM clicked c WHERE c.conversion_id = v.conversion_id)
  )
)
SELECT *, count(*) OVER (PARTITION BY conversion_id) AS n,
  row_number() OVER (
    PARTITION BY conversion_id ORDER BY us, coalesce(click_id, impression_id), impression_id
  ) AS position
FROM together
"""

_PATHS = """
SELECT b.event_id, b.user_id, b.time_us, b.conversion_type, b.value, b.currency, b.order_id, b.revokes,
  CASE
    WHEN bool_or(t.kind = 'click') THEN 'click_through' WHEN count(t.position) > 0 THEN 'view_through' ELSE 'organic'
  END AS outcome,
  count(t.position) AS path_length,
  coalesce(list(row(t.position, t.kind, t.impression_id, t.click_id, t.campaign_id, t.ad_id, t.us) ORDER BY t.position)
    FILTER (t.position IS NOT NULL), []) AS touches,
  CAST(make_timestamp(b.time_us) AS DATE) AS event_date
FROM bases b LEFT JOIN touches t ON t.conversion_id = b.event_id
GROUP BY ALL
"""

_LEFT_OUT = """
SELECT b.event_id, b.user_id, b.time_us, b.conversion_type, b.reason, b.left_out, b.currency, b.order_id, b.revokes,
  b.counted_id, t.campaign_id, CAST(make_timestamp(b.time_us) AS DATE) AS event_date
FROM bases b LEFT JOIN touches t ON t.conversion_id = b.event_id AND t.position = t.n
WHERE b.reason IS NOT NULL
"""

_ONLY_PATHS = """
DELETE FROM touches WHERE conversion_id IN (SELECT event_id FROM bases WHERE value IS NULL);
DELETE FROM bases WHERE value IS NULL
"""

_CREDITS = """
WITH places AS (
  SELECT conversion_id, position, position AS place, n, kind, us, campaign_id, ad_id, click_id, impression_id
  FROM touches
  UNION ALL
  SELECT event_id, 0, 1, 1, NULL, NULL, NULL, NULL, NULL, NULL
  FROM bases WHERE event_id NOT IN (SELECT conversion_id FROM touches)
),
aged AS (
  SELECT *, CAST(coalesce(max(us) OVER path - us, 0) AS HUGEINT) AS age,
    coalesce(max(CASE WHEN kind = 'click' THEN place END) OVER path, n) AS last_click
  FROM places WINDOW path AS (PARTITION BY conversion_id)
),
weighed AS (
  SELECT a.*, model, CAST(
    CASE model
      WHEN 'last_touch' THEN CASE WHEN place = n THEN 1 ELSE 0 END
      WHEN 'first_touch' THEN CASE WHEN place = 1 THEN 1 ELSE 0 END
      WHEN 'last_click' THEN CASE WHEN place = last_click THEN 1 ELSE 0 END
      WHEN 'linear' THEN 1
      WHEN 'position_based' THEN CASE WHEN n > 2 AND place IN (1, n) THEN 2 * (n - 2) ELSE 1 END
      WHEN 'time_decay' THEN d.power // (CAST(1 AS BIGINT) << CAST(least(age // {half_life}, 40) AS INTEGER))
    END AS HUGEINT
  ) AS weight
  FROM aged a CROSS JOIN (SELECT unnest({models}) AS model) LEFT JOIN decay d
    ON d.step = (age % {half_life}) * 4096 // {half_life}
),
amounts AS (
  SELECT w.*, sum(weight) OVER (PARTITION BY w.conversion_id, model, what) AS total, what,
    CASE what WHEN 'ppm' THEN CAST(1000000 AS HUGEINT) ELSE abs(CAST(b.value AS HUGEINT)) END AS amount,
    CASE WHEN what = 'micros' AND b.value < 0 THEN -1 ELSE 1 END AS sign, b.currency, b.time_us
  FROM weighed w JOIN bases b ON b.event_id = w.conversion_id
  CROSS JOIN (VALUES ('micros'), ('ppm')) AS whats(what)
),
parts AS (
  SELECT *, amount * weight // total AS part, row_number() OVER (
    PARTITION BY conversion_id, model, what ORDER BY (amount * weight) % total DESC, place
  ) AS turn
  FROM amounts
),
shares AS (
  SELECT *, sign * (
    part + CASE WHEN turn <= amount - sum(part) OVER (PARTITION BY conversion_id, model, what) THEN 1 ELSE 0 END
  ) AS share
  FROM parts
)
SELECT conversion_id, model, position, campaign_id, ad_id, click_id, impression_id,
  CAST(max(share) FILTER (what = 'micros') AS BIGINT) AS credit_micros,
  CAST(max(share) FILTER (what = 'ppm') AS BIGINT) AS weight_ppm,
  currency, time_us, CAST(make_timestamp(time_us) AS DATE) AS event_date
FROM shares
GROUP BY ALL
"""


def expected_credit(conversions: Sequence[Conversion], shown: Sequence[Shown], own: CreditSettings) -> Expected:
    """The paths and credits of ``conversions``, of which ``shown`` are all attributions."""
    values = {
        name: microseconds(getattr(own, name))
        for name in ("click_lookback", "view_lookback", "conversion_lookback", "half_life")
    }
    values |= {"most_touches": own.most_touches}
    values_and_texts = {**values, "views": own.views.value, "models": [model.value for model in own.models]}
    with duckdb.connect() as connection:
        connection.register("judged", _arrow(_JUDGED, _judged(conversions, own)))
        connection.register("attributions", _arrow(Shown._fields, shown))
        connection.register("decay", _decay())
        connection.execute("CREATE TABLE bases AS FROM judged")
        connection.execute(_TOUCHES.format(**values_and_texts))
        left_out = connection.execute(_LEFT_OUT).fetchall()
        connection.execute(_ONLY_PATHS)
        paths = connection.execute(_PATHS).fetchall()
        credits_ = connection.execute(_CREDITS.format(**values_and_texts)).fetchall()
    return Expected(paths=in_order(paths), credits=in_order(credits_), left_out=in_order(left_out))


def _judged(conversions: Sequence[Conversion], own: CreditSettings) -> list[Row]:
    """Rows of the columns :data:`_JUDGED`: of a conversion, what it is credited with, and the purchase that counts."""
    by_key = {(one.event_id, one.time_us): one for one in conversions}
    judged = judge_orders(
        conversions,
        same_order=own.same_order,
        repeat_within_us=microseconds(own.repeat_within),
        lookback_us=microseconds(own.conversion_lookback),
    )
    rows: list[Row] = []
    for key, one in judged.items():
        counted = by_key[one.counts_as] if one.counts_as else None
        basis = (counted.event_id, counted.user_id, counted.time_us) if counted else (None, None, None)
        rows.append((*by_key[key], one.credited_micros, one.reason, one.left_out_micros, *basis))
    return rows


def in_order(rows: Iterable[Sequence[Any]]) -> list[Row]:
    """``rows``, their touches as tuples and none of them as an empty one, sorted by their text."""
    frozen = [tuple(tuple(value) if isinstance(value, list) else value for value in row) for row in rows]
    return sorted(frozen, key=repr)


def _arrow(names: Sequence[str], rows: Sequence[Row]) -> pa.Table:
    numbers = ("time_us", "impression_us", "click_us", "value_micros", "value", "left_out", "basis_us")
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    return pa.table(
        {
            name: pa.array(values, pa.int64() if name in numbers else pa.string())
            for name, values in zip(names, columns, strict=True)
        }
    )


def _decay() -> pa.Table:
    """2 to the power of 32, divided by two to the power of each 4,096th part of a half-life."""
    with localcontext() as context:
        context.prec = 50
        powers = [int((Decimal(2) ** (32 - Decimal(step) / 4096)).to_integral_value()) for step in range(4096)]
    return pa.table({"step": pa.array(range(4096), pa.int64()), "power": pa.array(powers, pa.int64())})
