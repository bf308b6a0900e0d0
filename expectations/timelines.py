"""Rows of stacked bars over time, one row below the other, all with the same times."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import altair as alt

from expectations import charts
from expectations.charts import Drawing, Records
from expectations.intervals import describe, start_of

OTHERS = "others"
"""The kinds without a color of their own."""
TIME = "%-d %b %Y, %H:%M"
_WIDTH, _HEIGHT, _COUNT_WIDTH = 790, 80, 36
_FEWEST_SLOTS = 24
"""So that a single bar does not fill the chart."""
_FILLED = 0.88
"""Of the width of a bar; the rest is a gap."""
_FORMATS = ((timedelta(days=8), "%d %b %H:%M"), (timedelta(days=300), "%d %b"), (timedelta.max, "%b %Y"))
"""How the axis writes times, by the length up to which it does."""


@dataclass(frozen=True)
class Bar:
    """How many there are of one ``kind`` in a ``row`` within the interval from ``start`` (UTC) on."""

    row: str | None
    kind: str
    start: datetime
    count: int


@dataclass(frozen=True)
class Timelines:
    """The bars to draw.

    Attributes:
        bars: in order of time.
        interval: the length of a bar.
        last: up to when the chart reaches at least; None if there is nothing to draw.
    """

    bars: tuple[Bar, ...] = ()
    interval: timedelta = timedelta(hours=1)
    last: datetime | None = None


NOTHING = Timelines()


def draw(timelines: Timelines, titles: Mapping[str | None, str], colors: Mapping[str, str]) -> str:
    """The chart of the rows in ``titles`` as SVG, with ``colors`` by kind; empty without bars."""
    bars, interval = timelines.bars, timelines.interval
    if not bars or timelines.last is None:
        return ""
    end = start_of(max(timelines.last, bars[-1].start), interval) + interval
    span = min(bars[0].start, end - _FEWEST_SLOTS * interval), end
    rows = [
        _row(
            title,
            _stacked([bar for bar in bars if bar.row == row], interval, colors),
            colors,
            span,
            has_times=number == len(titles),
        )
        for number, (row, title) in enumerate(titles.items(), start=1)
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


def _stacked(bars: Sequence[Bar], interval: timedelta, colors: Mapping[str, str]) -> Records:
    """The parts of each bar of a row, the first of ``colors`` lowest.

    Returns:
        ``start``, ``end`` (milliseconds since 1970), ``kind`` (a key of ``colors``), ``low`` and ``high`` (counts from
        the bottom of the bar), ``shown`` (text).
    """
    heights: dict[datetime, dict[str, int]] = {}
    for bar in bars:
        parts = heights.setdefault(bar.start, dict.fromkeys(colors, 0))
        parts[bar.kind if bar.kind in colors else OTHERS] += bar.count
    rows, covered = [], describe(interval)
    for start, parts in heights.items():
        low = 0
        for kind, count in parts.items():
            if not count:
                continue
            rows.append(
                {
                    "start": _milliseconds(start),
                    "end": _milliseconds(start + _FILLED * interval),
                    "kind": kind,
                    "low": low,
                    "high": low + count,
                    "shown": f"{start:{TIME}} UTC, {covered}: {count:,} {kind}",
                }
            )
            low += count
    return rows


def _milliseconds(time: datetime) -> float:
    return time.timestamp() * 1000
