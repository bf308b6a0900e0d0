"""The look of the part: its chart, colors and texts."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from expectations import charts
from expectations.intervals import describe
from expectations.restated.figures import RestatedFigures
from expectations.timelines import OTHERS, TIME, draw

_MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True)
class RestatedPart:
    """The figures, and what else the template shows.

    Attributes:
        figures: the counts.
        colors: by cause, as in the chart.
        chart: SVG; empty if no row was changed.
        interval: the length of a bar in words.
    """

    figures: RestatedFigures
    colors: Mapping[str, str]
    chart: str
    interval: str

    @property
    def last(self) -> str:
        """When the last repair was decided, to the minute."""
        return self.figures.last.strftime(TIME)

    @staticmethod
    def name(text: str) -> str:
        """``text`` as shown."""
        return charts.printable(text)

    @staticmethod
    def signed(count: int) -> str:
        """A change with its sign."""
        return "0" if not count else f"{count:+,}".replace("-", _MINUS)

    @staticmethod
    def money(micros: int) -> str:
        """A change in micro-units as an amount, exactly."""
        if not micros:
            return "0"
        whole, fraction = divmod(abs(micros), 10**6)
        digits = f"{fraction:06}" if fraction % 10**4 else f"{fraction // 10**4:02}"
        return f"{'+' if micros > 0 else _MINUS}{whole:,}.{digits}"


def restated_part(figures: RestatedFigures | None) -> RestatedPart | None:
    """The part for ``figures``; None if nothing was ever restated."""
    if figures is None:
        return None
    totals: Counter[str] = Counter()
    for bar in figures.timelines.bars:
        totals[bar.kind] += bar.count
    colors = charts.series_colors([cause for cause, _ in totals.most_common()], OTHERS)
    drawn = {bar.row for bar in figures.timelines.bars}
    titles: dict[str | None, str] = {one.table: one.table for one in figures.tables if one.table in drawn}
    chart = draw(figures.timelines, titles, colors)
    return RestatedPart(figures, colors, chart, describe(figures.timelines.interval))
