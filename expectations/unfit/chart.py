"""The chart of the part: when records that did not fit were received, one row of stacked bars for each source."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import altair as alt

from expectations import charts
from expectations.charts import Drawing, Records
from expectations.unfit.figures import UnfitFigures
from expectations.unfit.intervals import describe, start_of

OTHERS = "others"
"""The verdicts without a color of their own."""
TIME = "%-d %b %Y, %H:%M"
_WIDTH, _HEIGHT, _COUNT_WIDTH = 790, 80, 36
_FEWEST_SLOTS = 24
"""So that a single bar does not fill the chart."""
_FILLED = 0.88
"""Of the width of a bar; the rest is a gap."""
_FORMATS = ((timedelta(days=8), "%d %b %H:%M"), (timedelta(days=300), "%d %b"), (timedelta.max, "%b %Y"))
"""How the axis writes times, by the length up to which it does."""


def name_of(source: str | None) -> str:
    """The name of ``source`` as shown."""
    return "no source" if source is None else source


def draw(figures: UnfitFigures, sources: Sequence[str | None], colors: Mapping[str, str]) -> str:
    """The chart for ``sources`` as SVG, with ``colors`` by verdict; empty without bars."""
    if not figures.bars or figures.last is None:
        return ""
    end = start_of(max(figures.last, figures.bars[-1].start), figures.interval) + figures.interval
    span = min(figures.bars[0].start, end - _FEWEST_SLOTS * figures.interval), end
    rows = [
        _row(name_of(source), _stacked(figures, source, colors), colors, span, has_times=number == len(sources))
        for number, source in enumerate(sources, start=1)
    ]
    return charts.svg(alt.vconcat(*rows, spacing=18))


def _row(
    title: str, parts: Records, colors: Mapping[str, str], span: tuple[datetime, datetime], *, has_times: bool
) -> Drawing:
    times = alt.Axis(
        format=next(form for length, form in _FORMATS if span[1] - span[0] < length),
        labels=has_times,
        ticks=has_times,
        grid=False,
        tickCount=8,
        labelOverlap=True,
        labelSeparation=12,
    )
    # Few labels, all whole numbers; equally wide, so that the rows stand exactly below each other.
    most = max(part["high"] for part in parts)
    counts = alt.Axis(
        format="~s", tickCount=min(3, most), tickMinStep=1, domain=False, minExtent=_COUNT_WIDTH, maxExtent=_COUNT_WIDTH
    )
    scale = alt.Scale(type="utc", domain=[_milliseconds(time) for time in span], nice=False)
    return (
        charts.chart_of(parts)
        .mark_bar(cornerRadius=1)
        .encode(
            x=alt.X("start:T", title=None, scale=scale, axis=times),
            x2="end:T",
            y=alt.Y("low:Q", title=None, axis=counts),
            y2="high:Q",
            color=alt.Color("kind:N", scale=alt.Scale(domain=list(colors), range=list(colors.values())), legend=None),
            description="shown:N",
        )
        .properties(
            width=_WIDTH,
            height=_HEIGHT,
            title=alt.TitleParams(title, anchor="start", frame="group", color=charts.INK, fontSize=12, offset=8),
        )
    )


def _stacked(figures: UnfitFigures, source: str | None, colors: Mapping[str, str]) -> Records:
    """The parts of each bar of ``source``, the most common verdict lowest.

    Returns:
        ``start``, ``end`` (milliseconds since 1970), ``kind`` (a key of ``colors``), ``low`` and ``high`` (counts from
        the bottom of the bar), ``shown`` (text).
    """
    heights: dict[datetime, dict[str, int]] = {}
    for bar in figures.bars:
        if bar.source == source:
            parts = heights.setdefault(bar.start, dict.fromkeys(colors, 0))
            parts[bar.verdict if bar.verdict in colors else OTHERS] += bar.records
    rows, covered = [], describe(figures.interval)
    for start, parts in heights.items():
        low = 0
        for kind, records in parts.items():
            if not records:
                continue
            rows.append(
                {
                    "start": _milliseconds(start),
                    "end": _milliseconds(start + _FILLED * figures.interval),
                    "kind": kind,
                    "low": low,
                    "high": low + records,
                    "shown": f"{start:{TIME}} UTC, {covered}: {records:,} {kind}",
                }
            )
            low += records
    return rows


def _milliseconds(time: datetime) -> float:
    return time.timestamp() * 1000
