"""The texts of the part. Its colors are in the page's style."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime

from expectations.days.figures import DaysFigures
from expectations.restated.page import RestatedPart
from expectations.timelines import TIME
from spark_jobs.days.day import Day, DayStatus

_MEANINGS = {
    DayStatus.OPEN: "may still change by itself",
    DayStatus.COMPLETE: "only a repair or a replay can change it",
    DayStatus.AUDITED: "a replay has agreed since it last changed",
    DayStatus.RESTATED: "changed since it was complete; the number says how often",
    DayStatus.FROZEN: "too old to be changed",
}


@dataclass(frozen=True)
class DaysPart:
    """The figures, and what else the template shows."""

    figures: DaysFigures

    @property
    def legend(self) -> Iterator[tuple[str, str, int]]:
        """Of each status: its name, what it means, and how many days of the grid have it."""
        for status, meaning in _MEANINGS.items():
            yield status.value, meaning, self.figures.statuses[status]

    @property
    def months(self) -> Iterator[tuple[str, int]]:
        """The months of the grid, each with how many of its dates are shown."""
        named = [f"{day:%B %Y}" for day in self.figures.dates]
        for name in dict.fromkeys(named):
            yield name, named.count(name)

    @staticmethod
    def date(day: date) -> str:
        """A date for people."""
        return f"{day:%-d %B %Y}"

    @staticmethod
    def time(moment: datetime) -> str:
        """A time to the minute."""
        return f"{moment:{TIME}}"

    def hover(self, day: Day) -> str:
        """The text of a cell."""
        lines = [f"{day.table_name}, {self.date(day.event_date)}: {day.words}"]
        if day.complete_at:
            lines.append(f"complete since {self.time(day.complete_at)} UTC")
        if day.restated and day.restated_at:
            times = "once" if day.restated == 1 else f"{day.restated} times"
            rows = f"{day.changes:,} row{'' if day.changes == 1 else 's'}"
            lines.append(f"restated {times}: {rows}, last at {self.time(day.restated_at)} UTC")
        if any((day.impressions, day.clicks, day.cost_micros)):
            counts = (
                f"impressions {self.signed(day.impressions)}",
                f"clicks {self.signed(day.clicks)}",
                f"cost {self.money(day.cost_micros)}",
            )
            lines.append(", ".join(counts))
        if day.audited_at:
            lines.append(f"a replay agreed at {self.time(day.audited_at)} UTC")
        return "\n".join(lines)

    signed = staticmethod(RestatedPart.signed)
    money = staticmethod(RestatedPart.money)


def days_part(figures: DaysFigures | None) -> DaysPart | None:
    """The part for ``figures``; None if there are no days."""
    return None if figures is None else DaysPart(figures)
