"""Conversions on the overview page: small answers of the views of credit, without Spark."""

from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from expectations.charts import Records
from expectations.overview.answers import rows_of as _rows
from spark_jobs.config.choices import CreditModel, LeftOut
from spark_jobs.config.sections import S3Settings
from spark_jobs.contract.tables import GROSS_CREDIT_TABLES, LEFT_OUT
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.store.arrow import row_store
from spark_jobs.sql.lake_sql import LakeSql

_CAMPAIGNS = 8
"""How many campaigns are shown: those with the most value by any model."""
_LONGEST = 6
"""Paths of this many touches or more are one bar."""
_MICROS = 1_000_000
_NO_TOUCH = "no touch"
_MOST_LEFT_OUT = 12
_REASONS = {
    LeftOut.REPEAT: "repeat of an order",
    LeftOut.NO_CONVERSION: "refund of what is not there",
    LeftOut.OTHER_CURRENCY: "refund in another currency",
    LeftOut.MORE_THAN_LEFT: "refund of more than is left",
}
_DELAYS = (("1 min", 60), ("10 min", 600), ("1 h", 3600), ("6 h", 21600), ("1 day", 86400), ("7 days", 604800))
"""Upper bounds of the bars, and how many seconds they are."""
_TOTALS = """
SELECT
    (SELECT currency FROM paths WHERE currency IS NOT NULL GROUP BY currency ORDER BY count(*) DESC, currency LIMIT 1)
        AS currency,
    count(*) FILTER (revokes IS NULL) AS conversions,
    (SELECT min(model) FROM credits) AS model, (SELECT count(*) FILTER (model = 'last_click') FROM credits) AS clicks
FROM paths
"""


@dataclass(frozen=True)
class Return:
    """A campaign: what it costs, and what it brings by one model; ``None`` where nothing can be divided."""

    campaign: str
    cost_micros: int | None
    conversions: float
    value_micros: int
    cpa_micros: int | None
    roas: float | None


@dataclass(frozen=True)
class LeftOutValue:
    """Value that credit leaves out of a campaign, for one reason, in one currency; negative for refunds."""

    reason: str
    campaign: str
    currency: str
    conversions: int
    value_micros: int


@dataclass(frozen=True)
class CreditFigures:
    """Everything that the page shows of conversions.

    Attributes:
        conversions: how many; refunds do not count.
        currency: the one that most of them have; values are in it alone. None: no conversion has a value.
        value_micros: their value, less refunds.
        models: ``campaign``, ``model``, ``value``, of the campaigns with the most value.
        lengths: ``touches`` (text), ``order``, ``conversions``.
        delays: ``length`` (from the last touch to the conversion), ``order``, ``conversions``.
        model: whose ``returns`` these are.
        returns: of the campaigns with the most value or cost.
        left_out: what is not credited, the largest values first.
    """

    conversions: int
    currency: str | None
    value_micros: int = 0
    models: Records = field(default_factory=list)
    lengths: Records = field(default_factory=list)
    delays: Records = field(default_factory=list)
    model: str = ""
    returns: tuple[Return, ...] = ()
    left_out: tuple[LeftOutValue, ...] = ()


def count_credit(lake: Lake, s3: S3Settings) -> CreditFigures | None:
    """The figures of the conversions of ``lake``; None if none was credited yet.

    Raises:
        SettingsError: there are no keys for its store.
        LakeError: a table cannot be read.
    """
    if not all(lake.has(table) for table in GROSS_CREDIT_TABLES):
        return None
    with closing(LakeSql(lake, row_store(lake, s3))) as sql:
        (totals,) = _rows(sql, _TOTALS)
        if not totals["conversions"]:
            return None
        found: dict[str, Any] = {"lengths": _lengths(sql), "delays": _delays(sql)}
        if lake.has(LEFT_OUT):
            found["left_out"] = _left_out(sql)
        if currency := totals["currency"]:
            model = CreditModel.LAST_CLICK.value if totals["clicks"] else totals["model"]
            found |= _of_currency(sql, currency, model)
        return CreditFigures(conversions=totals["conversions"], currency=currency, **found)


def _of_currency(sql: LakeSql, currency: str, model: str) -> dict[str, Any]:
    # A code of three letters: see CURRENCY_PATTERN of the contract.
    of_currency = f"currency = '{currency}'"
    values = _rows(sql, f"FROM credit_models WHERE {of_currency}")
    names = [one.value for one in CreditModel]
    best = sorted(values, key=lambda row: (-max(abs(row[name] or 0) for name in names), row["campaign_id"] or ""))
    models = [
        {"campaign": row["campaign_id"] or _NO_TOUCH, "model": name, "value": row[name] / _MICROS}
        for row in best[:_CAMPAIGNS]
        for name in names
        if row[name] is not None
    ]
    returns = _rows(
        sql,
        "SELECT campaign_id, cost_micros, conversions, value_micros, cpa_micros, roas FROM campaign_returns "
        f"WHERE ({of_currency} OR (currency IS NULL AND conversions = 0)) AND model = '{model}' "
        f"ORDER BY greatest(value_micros, cost_micros) DESC, campaign_id LIMIT {_CAMPAIGNS}",
    )
    ((value,),) = (row.values() for row in _rows(sql, f"SELECT sum(value_micros) FROM paths WHERE {of_currency}"))
    return {
        "value_micros": int(value),
        "models": models,
        "model": model,
        "returns": tuple(Return(*row.values()) for row in returns),
    }


def _left_out(sql: LakeSql) -> tuple[LeftOutValue, ...]:
    rows = _rows(
        sql,
        "SELECT reason, campaign_id, currency, conversions, value_micros FROM left_out_by_campaign "
        f"ORDER BY abs(value_micros) DESC, reason, campaign_id, currency LIMIT {_MOST_LEFT_OUT}",
    )
    return tuple(
        LeftOutValue(
            _REASONS[LeftOut(row["reason"])],
            row["campaign_id"] or _NO_TOUCH,
            row["currency"] or "",
            row["conversions"],
            row["value_micros"],
        )
        for row in rows
    )


def _lengths(sql: LakeSql) -> Records:
    counted = _rows(
        sql,
        f"SELECT least(path_length, {_LONGEST})::BIGINT AS touches, sum(conversions)::BIGINT AS conversions "
        "FROM path_lengths GROUP BY 1 ORDER BY 1",
    )
    return [{**row, "order": row["touches"], "touches": _touches(row["touches"])} for row in counted]


def _touches(number: int) -> str:
    if number == _LONGEST:
        return f"{number} or more"
    return "1 touch" if number == 1 else f"{number} touches" if number else "none: organic"


def _delays(sql: LakeSql) -> Records:
    """From the first bar to the last that is not empty."""
    bounds = "".join(f" WHEN s <= {seconds} THEN {order}" for order, (_, seconds) in enumerate(_DELAYS))
    counted = _rows(
        sql,
        f"SELECT CASE{bounds} ELSE {len(_DELAYS)} END AS place, count(*) AS conversions FROM ("
        "SELECT (epoch_us(conversion_time) - epoch_us(touches[-1].touch_time)) / 1e6 AS s FROM paths "
        "WHERE revokes IS NULL AND path_length > 0) GROUP BY 1",
    )
    counts = {row["place"]: row["conversions"] for row in counted}
    names = [*(f"up to {name}" for name, _ in _DELAYS), f"more than {_DELAYS[-1][0]}"]
    return [
        {"length": names[order], "order": order, "conversions": counts.get(order, 0)}
        for order in range(max(counts, default=-1) + 1)
    ]
