"""The charts, drawn as SVG: they need no script, so they are shown wherever a page is."""

import io
from collections.abc import Mapping
from typing import Any

import altair as alt

from expectations.overview.figures import Figures, Records

_WIDE, _NARROW, _HEIGHT = 990, 470, 220
_LABELS, _NUMBERS = 170, 60
"""Room beside the bars."""
# Legible on white and on black.
_INK, _LINE, _ACCENT = "#7d8795", "#8d97a530", "#4f7ce8"
_COLORS = ["#4f7ce8", "#e0853c", "#3fa675", "#c9557a", "#8f6fd1", "#b59a2e", "#8d97a5"]
_STATUS = {"online": "#3fa675", "active": "#4f7ce8", "inactive": "#8d97a5"}
_Drawing = Any
"""A chart of Altair; its methods promise no type."""
_FONT = "system-ui, -apple-system, Segoe UI, Roboto, Helvetica Neue, Arial, sans-serif"


def draw(figures: Figures) -> dict[str, str]:
    """By name, the charts for which there is something to show, as SVG.

    ``clicks`` and ``ctr`` (by campaign over time), ``delays``, ``lengths``, ``endings``, ``shares``, ``verdicts``,
    ``status``.
    """
    drawn = {
        "clicks": _over_time(figures.campaigns, "clicks", "clicks", "s"),
        "ctr": _over_time(figures.campaigns, "ctr", "click-through rate", ".1%"),
        "delays": _bars(figures.delays, "length", "clicks", order=[row["length"] for row in figures.delays]),
        "lengths": _bars(figures.lengths, "length", "sessions", order=[row["length"] for row in figures.lengths]),
        "endings": _bars(figures.endings, "ended_by", "sessions"),
        "shares": _bars(_shares(figures), "what", "share", number=".2%"),
        "verdicts": _bars(figures.verdicts, "verdict", "records"),
        "status": _bars(figures.status, "status", "users", colors=_STATUS),
    }
    return {name: _svg(chart) for name, chart in drawn.items() if chart is not None}


def _over_time(rows: Records, value: str, title: str, number: str) -> _Drawing | None:
    if not rows:
        return None
    campaigns = sorted({row["campaign"] for row in rows} - {"others"})
    order = [*campaigns, *(["others"] if any(row["campaign"] == "others" for row in rows) else [])]
    return (
        _chart(rows)
        .mark_line(strokeWidth=2, interpolate="monotone")
        .encode(
            x=alt.X("time:T", title=None, axis=alt.Axis(format="%d %b %H:%M", labelOverlap=True, tickCount=8)),
            y=alt.Y(f"{value}:Q", title=title, axis=alt.Axis(format=number, tickCount=5)),
            color=alt.Color(
                "campaign:N",
                sort=order,
                scale=alt.Scale(domain=order, range=[*_COLORS[: len(campaigns)], _COLORS[-1]][: len(order)]),
                legend=alt.Legend(title=None, orient="top"),
            ),
        )
        .properties(width=_WIDE, height=_HEIGHT)
    )


def _shares(figures: Figures) -> Records:
    ledger = figures.ledger
    if ledger is None or not ledger.received:
        return []
    good, kept = max(ledger.ok, 1), max(ledger.kept, 1)
    return [
        {"what": "quarantined, of received", "share": ledger.total_quarantined / ledger.received},
        {"what": "duplicates, of ok", "share": ledger.duplicates / good},
        {"what": "late, of ok", "share": ledger.late / good},
        {"what": "late for the join, of kept", "share": ledger.attribution_late / kept},
        {"what": "late for a session, of kept", "share": ledger.session_late / kept},
    ]


def _bars(
    rows: Records,
    name: str,
    value: str,
    *,
    number: str = ",",
    order: list[str] | None = None,
    colors: Mapping[str, str] | None = None,
) -> _Drawing | None:
    """Bars that lie, each with its number; the longest first unless there is an ``order``."""
    if not rows:
        return None
    color: Any = alt.value(_ACCENT)
    if colors:
        color = alt.Color(f"{name}:N", scale=alt.Scale(domain=list(colors), range=list(colors.values())), legend=None)
    base = _chart(rows).encode(
        x=alt.X(f"{value}:Q", axis=None, scale=alt.Scale(domainMin=0, nice=False, padding=0)),
        y=alt.Y(
            f"{name}:N",
            sort=order if order is not None else "-x",
            title=None,
            axis=alt.Axis(minExtent=_LABELS, maxExtent=_LABELS, labelPadding=6, ticks=False, domain=False, grid=False),
        ),
    )
    text = base.mark_text(align="left", dx=6, color=_INK).encode(text=alt.Text(f"{value}:Q", format=number))
    return (base.mark_bar(height=14, cornerRadiusEnd=3).encode(color=color) + text).properties(
        width=_NARROW - _LABELS - _NUMBERS, height=alt.Step(26)
    )


def _chart(rows: Records) -> _Drawing:
    return alt.Chart(alt.InlineData(values=rows))


def _svg(chart: _Drawing) -> str:
    configured = (
        chart.configure(font=_FONT, background="transparent", padding=4)
        .configure_view(stroke=None)
        .configure_axis(
            labelColor=_INK,
            titleColor=_INK,
            titleFontWeight="normal",
            titlePadding=14,
            gridColor=_LINE,
            domainColor=_LINE,
            tickColor=_LINE,
            labelFontSize=12,
            titleFontSize=12,
        )
        .configure_legend(labelColor=_INK, labelFontSize=12)
        .configure_text(fontSize=12)
    )
    drawn = io.StringIO()
    configured.save(drawn, format="svg")
    return drawn.getvalue().replace("<svg ", '<svg role="img" ', 1)
