"""The dashboard *business*: impressions, clicks, CTR and cost by campaign, sessions, and what conversions bring."""

from infra.grafana.model import Dashboard, Kind, Panel, Section
from spark_jobs.credit.plan import FEED_DAYS

_LAST = "of the hours that the feed covers (`campaign_stats.feed`, 6 h by default)"
_NEWEST = "per second in the newest window (`campaign_stats.window`, 10 min by default)"
_LENGTH = 'scalar(adloom_campaign_span_seconds{span="window"})'
_IN_FEED = "In the hours of the feed"
_CREDITED = f"of the last {FEED_DAYS} days up to where credit has come, gross"
_IN_CREDIT = f"Conversions of the last {FEED_DAYS} days"


def _by_campaign(title: str, meaning: str, query: str, unit: str) -> Panel:
    return Panel(title, meaning, query, unit, legend="{{campaign}}")


def _sum(name: str, span: str) -> str:
    return f'sum(adloom_campaign_{name}{{span="{span}"}})'


def _top(name: str) -> str:
    """The ten campaigns with the most ``name`` in the newest window, per second."""
    return f'topk(10, adloom_campaign_{name}{{span="window"}}) / {_LENGTH}'


_TOTALS = Section(
    _IN_FEED,
    (
        Panel("Impressions", f"Impressions {_LAST}.", _sum("impressions", "feed"), "short", Kind.NUMBER),
        Panel("Clicks", f"Clicks {_LAST}, by their own time.", _sum("clicks", "feed"), "short", Kind.NUMBER),
        Panel(
            "CTR",
            f"Clicks / impressions {_LAST}.",
            f"{_sum('clicks', 'feed')} / {_sum('impressions', 'feed')}",
            "percentunit",
            Kind.NUMBER,
        ),
        Panel(
            "Cost",
            f"Cost of the impressions {_LAST}, in units of currency; impressions without a cost are left out.",
            f"{_sum('cost_micros', 'feed')} / 1e6",
            "short",
            Kind.NUMBER,
        ),
        Panel(
            "Sessions today",
            "Sessions that began today (UTC) and have ended.",
            "max(adloom_sessions_today)",
            "short",
            Kind.NUMBER,
        ),
        Panel(
            "End of the newest window",
            "How long ago the newest window ended. With `campaign_stats.output = append` a window comes when it is "
            "final: after the watermark and the attribution window.",
            "time() - max(adloom_campaign_newest_window_seconds)",
            "s",
            Kind.NUMBER,
        ),
    ),
)
_CAMPAIGNS = Section(
    "Campaigns in the newest window, at the time when it came",
    (
        _by_campaign(
            "Impressions", f"The ten campaigns with the most impressions, {_NEWEST}.", _top("impressions"), "cps"
        ),
        _by_campaign("Clicks", f"The ten campaigns with the most clicks, {_NEWEST}.", _top("clicks"), "cps"),
        _by_campaign(
            "CTR",
            "Clicks / impressions in the newest window, of the ten campaigns with the most impressions.",
            'adloom_campaign_clicks{span="window"} / (topk(10, adloom_campaign_impressions{span="window"}) > 0)',
            "percentunit",
        ),
        _by_campaign(
            "Cost per second",
            f"The ten campaigns with the highest cost, in units of currency {_NEWEST}.",
            f"{_top('cost_micros')} / 1e6",
            "short",
        ),
    ),
)
_TABLES = Section(
    f"{_IN_FEED}, by campaign",
    (
        Panel(
            "Impressions by campaign",
            f"Impressions {_LAST}; beyond 100 campaigns, the others together.",
            'sum by (campaign) (adloom_campaign_impressions{span="feed"})',
            "short",
            Kind.TABLE,
            legend="impressions",
        ),
        Panel(
            "Cost by campaign",
            f"Cost {_LAST}, in units of currency.",
            'sum by (campaign) (adloom_campaign_cost_micros{span="feed"}) / 1e6',
            "short",
            Kind.TABLE,
            legend="cost",
        ),
    ),
)
_SESSIONS = Section(
    "Sessions",
    (
        Panel(
            "Sessions today",
            "Sessions that began today (UTC) and have ended; it starts from zero at midnight.",
            "max(adloom_sessions_today)",
            "short",
            legend="sessions",
        ),
    ),
)
_CREDIT = Section(
    _IN_CREDIT,
    (
        Panel(
            "Conversions",
            f"Conversions {_CREDITED}, without refunds.",
            "max(sum by (model) (adloom_credit_conversions))",
            "short",
            Kind.NUMBER,
        ),
        Panel(
            "Value",
            f"Value of the conversions {_CREDITED}, less refunds, by currency.",
            "max by (currency) (sum by (model, currency) (adloom_credit_value_micros)) / 1e6",
            "short",
            Kind.NUMBER,
            legend="{{currency}}",
        ),
        Panel(
            "Credit has come to",
            "How far behind the present the last conversion with credit may be. A conversion waits until no touch of "
            "it can come: the watermark of `attribute` and its window. If it grows, look at `credit_conversions`.",
            "time() - max(adloom_credit_until_seconds)",
            "s",
            Kind.NUMBER,
        ),
    ),
)
_MODELS = Section(
    f"{_IN_CREDIT}, by campaign and model",
    (
        Panel(
            "Value by campaign and model",
            f"What each campaign is credited with {_CREDITED}, in units of currency; `(organic)`: conversions without "
            "a touch. Models share the same value in different ways, so they are not to be added.",
            "sum by (campaign, model, currency) (adloom_credit_value_micros) / 1e6",
            "short",
            Kind.TABLE,
            legend="value",
        ),
        Panel(
            "Conversions by campaign and model",
            f"Conversions {_CREDITED}, each by the share that the campaign has in it.",
            "sum by (campaign, model) (adloom_credit_conversions)",
            "short",
            Kind.TABLE,
            legend="conversions",
        ),
    ),
)
BUSINESS = Dashboard(
    "business",
    "adloom: campaigns",
    "Impressions, clicks, CTR and cost of the newest windows, by campaign, today's sessions, and what conversions "
    'bring. For past days: `adloom sql "from daily_campaigns"` and `adloom sql "from daily_credits"`.',
    (_TOTALS, _CAMPAIGNS, _TABLES, _SESSIONS, _CREDIT, _MODELS),
)
