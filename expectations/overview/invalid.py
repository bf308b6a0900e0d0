"""Invalid traffic on the overview page: gross and net side by side, and each rule; without Spark."""

from contextlib import closing
from dataclasses import dataclass
from typing import Any

from expectations.charts import Records
from expectations.overview.answers import rows_of
from spark_jobs.config.sections import S3Settings
from spark_jobs.contract.tables import ATTRIBUTIONS, MARKS, SILVER_EVENTS
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.store.arrow import row_store
from spark_jobs.sql.lake_sql import LakeSql

_CAMPAIGNS = 8
"""How many campaigns are shown: those that cost most."""
_MICROS, _MILLION = 1_000_000, 1_000_000
GROSS, NET = "gross", "net"
_SUMS = ("impressions", "clicks", "cost_micros")
_TOTALS = ", ".join(f"coalesce(sum({side}{name}), 0)::BIGINT" for side in ("", "valid_") for name in _SUMS)


@dataclass(frozen=True)
class Counted:
    """Totals of all campaigns, gross or net."""

    side: str
    impressions: int
    clicks: int
    cost_micros: int


@dataclass(frozen=True)
class MarkedByRule:
    """A version of a rule: what it marks, and the share of its users, and of all, who convert; None: it has none."""

    rule: str
    version: str
    traffic_class: str
    impressions: int
    clicks: int
    conversions: int
    activities: int
    cost_micros: int | None
    users: int
    converting: float | None
    all_converting: float | None


@dataclass(frozen=True)
class InvalidFigures:
    """Everything that the page shows of invalid traffic.

    Attributes:
        totals: gross, then net.
        rules: those that mark anything.
        campaigns: ``campaign``, ``side`` (gross or net), ``clicks``, ``cost``, of the campaigns that cost most.
    """

    totals: tuple[Counted, Counted]
    rules: tuple[MarkedByRule, ...]
    campaigns: Records


def count_invalid(lake: Lake, s3: S3Settings) -> InvalidFigures | None:
    """The figures of the marks of ``lake``; None if nothing is marked.

    Raises:
        SettingsError: there are no keys for its store.
        LakeError: a table cannot be read.
    """
    if not all(lake.has(table) for table in (MARKS, SILVER_EVENTS, ATTRIBUTIONS)):
        return None
    with closing(LakeSql(lake, row_store(lake, s3))) as sql:
        rules = tuple(map(_rule, rows_of(sql, "FROM invalid_by_rule")))
        if not rules:
            return None
        (totals,) = rows_of(sql, f"SELECT {_TOTALS} FROM daily_campaigns")
        counts = list(totals.values())
        sides = Counted(GROSS, *counts[: len(_SUMS)]), Counted(NET, *counts[len(_SUMS) :])
        return InvalidFigures(sides, rules, _campaigns(sql))


def _rule(row: dict[str, Any]) -> MarkedByRule:
    names = ("impressions", "clicks", "conversions", "activities", "cost_micros", "users")
    return MarkedByRule(
        rule=row["rule_id"],
        version=row["rule_version"],
        traffic_class=row["class"],
        converting=_share(row["converting_ppm"]),
        all_converting=_share(row["all_converting_ppm"]),
        **{name: row[name] for name in names},
    )


def _share(ppm: int | None) -> float | None:
    return None if ppm is None else ppm / _MILLION


def _campaigns(sql: LakeSql) -> Records:
    found = rows_of(
        sql,
        "SELECT campaign_id, sum(cost_micros)::BIGINT AS gross_cost, sum(valid_cost_micros)::BIGINT AS net_cost, "
        "sum(clicks)::BIGINT AS gross_clicks, sum(valid_clicks)::BIGINT AS net_clicks FROM daily_campaigns "
        f"GROUP BY campaign_id ORDER BY gross_cost DESC NULLS LAST, campaign_id LIMIT {_CAMPAIGNS}",
    )
    return [
        {
            "campaign": row["campaign_id"],
            "side": side,
            "clicks": row[f"{side}_clicks"] or 0,
            "cost": (row[f"{side}_cost"] or 0) / _MICROS,
        }
        for row in found
        for side in (GROSS, NET)
    ]
