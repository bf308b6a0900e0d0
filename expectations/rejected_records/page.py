"""The part as the template takes it: colors, times and texts."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from expectations import charts
from expectations.intervals import describe
from expectations.rejected_records.figures import SHOWN_CHARACTERS, Example, RejectedFigures
from expectations.timelines import OTHERS, TIME, draw

_MOST_SOURCES = 8
"""How many sources get a chart of their own."""
_LEAST_SHARE = 0.0001
"""Smaller ones would be printed as none."""


@dataclass(frozen=True)
class RejectedPart:
    """The figures, and what else the template shows.

    Attributes:
        figures: the counts.
        colors: by verdict, as in the chart; the rare ones share the color of ``others``.
        chart: SVG; empty without records that did not fit and have a time.
        charted: how many sources the chart shows.
        interval: the length of a bar in words.
    """

    figures: RejectedFigures
    colors: Mapping[str, str]
    chart: str
    charted: int
    interval: str

    def color(self, verdict: str) -> str:
        """The color of ``verdict``."""
        return self.colors.get(verdict) or self.colors[OTHERS]

    @staticmethod
    def name(source: str | None) -> str:
        """The name of ``source`` as shown."""
        return charts.printable(_name_of(source))

    @staticmethod
    def share(records: int, received: int) -> str:
        """``records`` as a share of ``received``."""
        share = records / received if received else 0.0
        return "<0.01%" if 0 < share < _LEAST_SHARE else f"{share:.2%}"

    @staticmethod
    def time(time: datetime | None) -> str:
        """A time to the minute."""
        return "unknown" if time is None else time.strftime(TIME)

    @staticmethod
    def place(example: Example) -> str:
        """Where and when an example was received."""
        received = "" if example.received is None else f" · {example.received:%-d %b %Y, %H:%M:%S}"
        return charts.printable(example.place or "unknown place") + received

    @staticmethod
    def cut(text: str | None) -> str:
        """The start of ``text``, with an ellipsis if there is more."""
        text = text or ""
        return charts.printable(text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…")


def rejected_part(figures: RejectedFigures | None) -> RejectedPart | None:
    """The part for ``figures``; None without a table of records."""
    if figures is None:
        return None
    totals: Counter[str] = Counter()
    for source in figures.sources:
        totals.update({found.verdict: found.records for found in source.verdicts})
    colors = charts.series_colors([verdict for verdict, _ in totals.most_common()], OTHERS)
    charted = {bar.row for bar in figures.timelines.bars}
    shown = [source.name for source in figures.sources if source.name in charted][:_MOST_SOURCES]
    chart = draw(figures.timelines, {name: _name_of(name) for name in shown}, colors)
    return RejectedPart(figures, colors, chart, len(shown), describe(figures.timelines.interval))


def _name_of(source: str | None) -> str:
    return "no source" if source is None else source
