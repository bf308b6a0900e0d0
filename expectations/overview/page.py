"""The page itself: numbers first, then pictures, each with a sentence that says how to read it."""

from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import SparkSession

from expectations.overview.charts import draw
from expectations.overview.figures import Figures, count_figures
from expectations.templates import load_template
from spark_jobs.contracts.lake import OVERVIEW, REPORTS, Lake

_MICROS = 1_000_000


@dataclass(frozen=True)
class Picture:
    """A chart and what it shows."""

    name: str
    title: str
    told: str
    is_wide: bool = False


_PICTURES = (
    Picture("clicks", "Clicks by campaign", "Clicks on the impressions of each hour, however much later.", True),
    Picture("ctr", "Click-through rate by campaign", "Clicks for each impression, by the hour of that.", True),
    Picture("delays", "From impression to click", "How long people take to click, up to the attribution window."),
    Picture("lengths", "How long sessions are", "From the first event of a session to its last."),
    Picture("endings", "How sessions end", "By an event that says so (is_last), or by silence (timeout)."),
    Picture("status", "Who is there", "What the newest change of each user says."),
    Picture("shares", "What does not get through", "Shares of the records received, of the good ones, of those kept."),
    Picture("verdicts", "Quarantine by verdict", "The first rule that each broken record breaks; bronze keeps them."),
)


def write_overview(spark: SparkSession, lake: Lake, now: datetime) -> str:
    """Writes the page among the reports of ``lake`` and returns its key.

    Args:
        spark: a session with Delta.
        lake: what to show.
        now: with zone.
    """
    figures = count_figures(spark, lake)
    drawn = draw(figures)
    page = load_template("overview.html.j2").render(
        lake=lake,
        made_at=now,
        tiles=_tiles(figures),
        funnel=_funnel(figures),
        pictures=[(picture, drawn[picture.name]) for picture in _PICTURES if picture.name in drawn],
        has_quality=lake.files.read(f"{REPORTS}/index.html") is not None,
    )
    lake.files.write(OVERVIEW, page.encode())
    return OVERVIEW


def _tiles(figures: Figures) -> list[tuple[str, str]]:
    totals = figures.totals
    rate = f"{totals['clicks'] / totals['impressions']:.2%}" if totals["impressions"] else "none"
    return [
        ("impressions", f"{totals['impressions']:,}"),
        ("clicks attributed", f"{totals['clicks']:,}"),
        ("click-through rate", rate),
        ("cost", f"{totals['cost_micros'] / _MICROS:,.2f}"),
        ("sessions", f"{totals['sessions']:,}"),
        ("users", f"{totals['users']:,}"),
    ]


def _funnel(figures: Figures) -> list[tuple[str, int, float]]:
    """The steps from a record to a click: name, count, and its share of the first in percent."""
    if figures.ledger is None or not figures.ledger.received:
        return []
    steps = (
        ("received", figures.ledger.received),
        ("ok", figures.ledger.ok),
        ("kept", figures.ledger.kept),
        ("impressions", figures.totals["impressions"]),
        ("clicked", figures.ledger.attribution.get("clicked", 0)),
    )
    return [(name, count, 100 * count / figures.ledger.received) for name, count in steps]
