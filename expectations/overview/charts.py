"""The charts of the overview page, by name."""

from expectations import charts
from expectations.charts import Records
from expectations.overview.credit import CreditFigures
from expectations.overview.figures import Figures
from expectations.overview.invalid import GROSS, NET, InvalidFigures
from spark_jobs.config.choices import CreditModel
from spark_jobs.ledger.model import RecordKind
from spark_jobs.queries.attribute.query import NAME as ATTRIBUTE
from spark_jobs.queries.sessionize.query import NAME as SESSIONIZE

_STATUS_COLORS = {
    "online": "var(--series-3)",
    "active": "var(--series-1)",
    "inactive": "var(--series-rest)",
}
_FUNNEL_WIDTH = 1030


def draw(figures: Figures, credit: CreditFigures | None, invalid: InvalidFigures | None) -> dict[str, str]:
    """By name, the charts for which there is data, as SVG.

    ``funnel``, ``clicks`` and ``ctr`` (by campaign over time), ``delays``, ``lengths``, ``endings``, ``shares``,
    ``verdicts``, ``status``; of conversions ``models``, ``paths``, ``converting``; of invalid traffic
    ``net_clicks``, ``net_cost``.
    """
    drawn = {
        "funnel": charts.funnel(_funnel(figures), _FUNNEL_WIDTH),
        "clicks": charts.lines(figures.campaigns, "clicks", "clicks", "s"),
        "ctr": charts.lines(figures.campaigns, "ctr", "click-through rate", ".1%"),
        "delays": charts.bars(figures.delays, "length", "clicks", order=[row["length"] for row in figures.delays]),
        "lengths": charts.bars(figures.lengths, "length", "sessions", order=[row["length"] for row in figures.lengths]),
        "endings": charts.bars(figures.endings, "ended_by", "sessions"),
        "shares": charts.bars(_shares(figures), "what", "share", number=".2%"),
        "verdicts": charts.bars(figures.verdicts, "verdict", "records"),
        "status": charts.bars(figures.status, "status", "users", colors=_STATUS_COLORS),
    }
    if credit is not None:
        lengths, delays = credit.lengths, credit.delays
        models = [model.value for model in CreditModel]
        drawn |= {
            "models": charts.grouped_bars(credit.models, "campaign", "model", "value", models),
            "paths": charts.bars(lengths, "touches", "conversions", order=[row["touches"] for row in lengths]),
            "converting": charts.bars(delays, "length", "conversions", order=[row["length"] for row in delays]),
        }
    if invalid is not None:
        for name, figure in (("net_clicks", "clicks"), ("net_cost", "cost")):
            drawn[name] = charts.grouped_bars(
                invalid.campaigns, "campaign", "side", figure, [GROSS, NET], is_wide=False
            )
    return {name: charts.svg(chart) for name, chart in drawn.items() if chart is not None}


def _funnel(figures: Figures) -> list[tuple[str, int]]:
    """The steps from a record to a click."""
    ledger = figures.ledger
    if ledger is None:
        return []
    return [
        ("received", ledger.received),
        ("ok", ledger.ok),
        ("kept", ledger.kept),
        ("impressions", figures.totals["impressions"]),
        ("clicked", figures.totals["clicks"]),
    ]


def _shares(figures: Figures) -> Records:
    ledger = figures.ledger
    if ledger is None or not ledger.received:
        return []
    ok, kept = max(ledger.ok, 1), max(ledger.kept, 1)
    return [
        {"what": "quarantined, of received", "share": ledger.total_quarantined / ledger.received},
        {"what": "duplicates, of ok", "share": ledger.duplicates / ok},
        {"what": "late, of ok", "share": ledger.late / ok},
        {"what": "late for the join, of kept", "share": ledger.rows(RecordKind.LATE, account=ATTRIBUTE) / kept},
        {"what": "late for a session, of kept", "share": ledger.rows(RecordKind.LATE, account=SESSIONIZE) / kept},
    ]
