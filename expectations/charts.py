"""Chart shapes for the report pages, drawn by Altair as inline SVG.

A page needs no script and fetches nothing. Colors come from the page's style sheet (``_style.css.j2``), so charts
follow its light and dark themes.
"""

import io
import re
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

Records = list[dict[str, Any]]
"""Rows of a chart, as Altair takes them."""
Drawing = Any
"""An Altair chart; Altair's methods declare no types."""

_WIDE, _NARROW, _HEIGHT = 990, 470, 220
_LABEL_WIDTH, _NUMBER_WIDTH = 170, 60
_STEP_WIDTH, _COUNT_WIDTH, _PERCENT_WIDTH = 90, 84, 62
_SEEN = 1 / 12
"""The least height of a part that must be seen, as a share of the bar."""
INK, _SOFT, _LINE, _FILL, _ACCENT = (f"var(--{name})" for name in ("ink", "soft", "line", "fill", "accent"))
_SERIES = [f"var(--series-{number})" for number in range(1, 7)]
_REST = "var(--series-rest)"
_FONT = "system-ui, -apple-system, Segoe UI, Roboto, Helvetica Neue, Arial, sans-serif"
_LABELLED_MARK = re.compile(r'(<path aria-label="([^"]*)" role="graphics-symbol" aria-roledescription="bar"[^>]*)/>')


def svg(chart: Drawing) -> str:
    """``chart`` as an SVG element to put into a page; hovering over a bar shows its figures."""
    configured = (
        chart.configure(font=_FONT, background="transparent", padding=0)
        .configure_view(stroke=None)
        .configure_axis(
            labelColor=_SOFT,
            titleColor=_SOFT,
            titleFontWeight="normal",
            titlePadding=14,
            gridColor=_LINE,
            domainColor=_LINE,
            tickColor=_LINE,
            labelFontSize=12,
            titleFontSize=12,
        )
        .configure_legend(labelColor=_SOFT, labelFontSize=12)
        .configure_text(fontSize=12)
    )
    file = io.StringIO()
    # A character that XML does not allow would abort the process: the renderer takes texts as SVG to measure them.
    type(configured).from_dict(_drawable(configured.to_dict())).save(file, format="svg")
    # Altair writes a mark's figures for screen readers only.
    titled = _LABELLED_MARK.sub(r"\1><title>\2</title></path>", file.getvalue())
    return titled.replace("<svg ", '<svg role="img" ', 1)


def printable(text: str) -> str:
    """``text`` without control characters, which would not show, or would reorder what does."""
    return "".join(one if one.isprintable() or one in "\n\t" else "\N{REPLACEMENT CHARACTER}" for one in text)


def _drawable(value: Any) -> Any:
    """A chart's definition with :func:`printable` texts."""
    if isinstance(value, dict):
        return {name: _drawable(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_drawable(part) for part in value]
    return printable(value) if isinstance(value, str) else value


def lines(rows: Records, value: str, title: str, number: str) -> Drawing | None:
    """``value`` over ``time``, a line for each ``campaign``; None without rows.

    Args:
        rows: ``time`` (ISO), ``campaign``, and ``value``; the campaign ``others`` comes last and is grey.
        value: name of the column to draw.
        title: of the vertical axis.
        number: D3 format of its labels.
    """
    if not rows:
        return None
    campaigns = sorted({row["campaign"] for row in rows} - {"others"})
    colors = dict(zip(campaigns, _SERIES, strict=False))
    if any(row["campaign"] == "others" for row in rows):
        colors["others"] = _REST
    return (
        chart_of(rows)
        .mark_line(strokeWidth=2, interpolate="monotone")
        .encode(
            # Without the scale Altair would print times in the machine's zone.
            x=alt.X(
                "time:T",
                title="UTC",
                scale=alt.Scale(type="utc"),
                axis=alt.Axis(format="%d %b %H:%M", labelOverlap=True, tickCount=8, titlePadding=6),
            ),
            y=alt.Y(f"{value}:Q", title=title, axis=alt.Axis(format=number, tickCount=5)),
            color=alt.Color(
                "campaign:N",
                sort=list(colors),
                scale=alt.Scale(domain=list(colors), range=list(colors.values())),
                legend=alt.Legend(title=None, orient="top"),
            ),
        )
        .properties(width=_WIDE, height=_HEIGHT)
    )


def series_colors(names: Sequence[str], rest: str) -> dict[str, str]:
    """A color for each of ``names``; if there are more names than colors, ``rest`` has one for those left out."""
    colors = dict(zip(names, _SERIES, strict=False))
    return colors if len(names) <= len(_SERIES) else colors | {rest: _REST}


def bars(
    rows: Records,
    label: str,
    value: str,
    *,
    number: str = ",",
    order: list[str] | None = None,
    colors: Mapping[str, str] | None = None,
) -> Drawing | None:
    """Horizontal bars, each with its number; the longest first unless there is an ``order``. None without rows."""
    if not rows:
        return None
    color: Any = alt.value(_ACCENT)
    if colors:
        color = alt.Color(f"{label}:N", scale=alt.Scale(domain=list(colors), range=list(colors.values())), legend=None)
    base = chart_of(rows).encode(
        x=alt.X(f"{value}:Q", axis=None, scale=alt.Scale(domainMin=0, nice=False, padding=0)),
        y=_bar_labels(label, order if order is not None else "-x", _LABEL_WIDTH),
    )
    text = base.mark_text(align="left", dx=6, color=INK).encode(text=alt.Text(f"{value}:Q", format=number))
    return (base.mark_bar(height=14, cornerRadiusEnd=3).encode(color=color) + text).properties(
        width=_NARROW - _LABEL_WIDTH - _NUMBER_WIDTH, height=alt.Step(26)
    )


def grouped_bars(
    rows: Records, label: str, series: str, value: str, names: Sequence[str], *, is_wide: bool = True
) -> Drawing | None:
    """Horizontal bars in groups: one group for each ``label``, in the order of ``rows``. None without rows.

    Args:
        rows: ``label``, ``series``, ``value``.
        label: column with the name of a group.
        series: column with the name of a bar.
        value: column with its length.
        names: of the series, in order; as many as there are colors.
        is_wide: over the whole page, not half of it.
    """
    if not rows:
        return None
    shown = [name for name in names if any(row[series] == name for row in rows)]
    return (
        chart_of(rows)
        .mark_bar(height=7, cornerRadiusEnd=2)
        .encode(
            x=alt.X(f"{value}:Q", title=None, axis=alt.Axis(format=",.2~f", tickCount=6)),
            y=_bar_labels(label, list(dict.fromkeys(row[label] for row in rows)), _LABEL_WIDTH),
            yOffset=alt.YOffset(f"{series}:N", sort=shown, scale=alt.Scale(paddingOuter=0)),
            color=alt.Color(
                f"{series}:N",
                sort=shown,
                scale=alt.Scale(domain=shown, range=_SERIES[: len(shown)]),
                legend=alt.Legend(title=None, orient="top"),
            ),
        )
        .properties(width=(_WIDE if is_wide else _NARROW) - _LABEL_WIDTH, height=alt.Step(8, **{"for": "offset"}))
    )


def funnel(steps: Sequence[tuple[str, int]], width: int) -> Drawing | None:
    """A bar for each step (name, count), with its count and its share of the first step; None without a first count."""
    if not steps or not steps[0][1]:
        return None
    whole = steps[0][1]
    rows = [
        {"step": name, "share": count / whole, "count": f"{count:,}", "percent": f"{count / whole:.1%}", "whole": 1}
        for name, count in steps
    ]
    room = width - _STEP_WIDTH - _COUNT_WIDTH - _PERCENT_WIDTH
    base = chart_of(rows).encode(y=_bar_labels("step", [name for name, _ in steps], _STEP_WIDTH))
    scale = alt.Scale(domain=[0, 1])
    track, filled = (
        base.mark_bar(height=20, cornerRadius=5).encode(
            x=alt.X(f"{column}:Q", axis=None, scale=scale), color=alt.value(color), description="percent:N"
        )
        for column, color in (("whole", _FILL), ("share", _ACCENT))
    )
    count, percent = (
        base.mark_text(align="right", color=color, fontSize=13).encode(x=alt.value(place), text=f"{column}:N")
        for column, color, place in (
            ("count", INK, room + _COUNT_WIDTH),
            ("percent", _SOFT, room + _COUNT_WIDTH + _PERCENT_WIDTH),
        )
    )
    return (track + filled + count + percent).properties(width=room, height=alt.Step(30))


def validations(history: Sequence[Mapping[str, Any]], slots: int, size: tuple[int, int]) -> Drawing:
    """Stacked bars, one for each validation, the oldest first: expectations met, warnings above, broken on top.

    However few rules fail, their part of the bar stays tall enough to see.

    Args:
        history: for each validation ``at``, ``passed``, ``warnings``, ``critical``, ``rows``.
        slots: bars that there is room for.
        size: width and height in px.
    """
    rows = [part for place, entry in enumerate(history) for part in _stack(place, entry)]
    colors = {"met": "var(--good-bar)", "warning": "var(--warn-bar)", "broken": "var(--bad)", "empty": "var(--soft)"}
    return (
        chart_of(rows)
        .mark_bar(cornerRadius=1.5)
        .encode(
            x=alt.X(
                "place:O",
                axis=None,
                scale=alt.Scale(domain=list(range(slots)), paddingInner=0.2, paddingOuter=0),
            ),
            y=alt.Y("low:Q", axis=None, scale=alt.Scale(domain=[0, 1])),
            y2="high:Q",
            color=alt.Color("kind:N", scale=alt.Scale(domain=list(colors), range=list(colors.values())), legend=None),
            description="shown:N",
        )
        .properties(width=size[0], height=size[1])
    )


def _stack(place: int, entry: Mapping[str, Any]) -> Records:
    """The parts of one bar, from the bottom: ``place``, ``kind``, ``low`` and ``high`` (0 to 1), ``shown`` (text)."""
    at = entry["at"].replace("+00:00", "Z")
    total = entry["passed"] + entry["warnings"] + entry["critical"]
    if not total:
        return [{"place": place, "kind": "empty", "low": 0, "high": _SEEN, "shown": f"{at}: nothing checked"}]
    shown = (
        f"{at}: {entry['passed']} met, {entry['critical']} broken, {entry['warnings']} warnings, {entry['rows']:,} rows"
    )
    failed = {
        kind: max(entry[count] / total, _SEEN)
        for kind, count in (("warning", "warnings"), ("broken", "critical"))
        if entry[count]
    }
    heights = {"met": max(1 - sum(failed.values()), 0)} | failed
    whole = sum(heights.values())
    parts, low = [], 0.0
    for kind, share in heights.items():
        if height := share / whole:
            parts.append({"place": place, "kind": kind, "low": low, "high": low + height, "shown": shown})
        low += height
    return parts


def _bar_labels(label: str, order: Any, width: int) -> alt.Y:
    return alt.Y(
        f"{label}:N",
        sort=order,
        title=None,
        axis=alt.Axis(minExtent=width, maxExtent=width, labelPadding=6, ticks=False, domain=False, grid=False),
    )


def chart_of(rows: Records) -> Drawing:
    """A chart of ``rows`` to give marks and encodings to."""
    return alt.Chart(alt.InlineData(values=rows))
