"""The overview page: totals first, then charts, each with a caption."""

from dataclasses import dataclass
from datetime import datetime

from expectations.overview.charts import draw
from expectations.overview.credit import CreditFigures, count_credit
from expectations.overview.figures import Figures, count_figures
from expectations.overview.invalid import InvalidFigures, count_invalid
from expectations.templates import load_template
from spark_jobs.places import OVERVIEW, REPORTS
from spark_jobs.spark.open_lake import OpenLake

_MICROS = 1_000_000
_NOTHING = "\N{EN DASH}"


@dataclass(frozen=True)
class Picture:
    """A chart: its ``name`` in :func:`draw`, its ``title``, and a ``caption`` that says what it shows."""

    name: str
    title: str
    caption: str
    is_wide: bool = False


_PICTURES = (
    Picture("funnel", "From record to click", "Each step as a share of the records received.", True),
    Picture("clicks", "Clicks by campaign", "By the hour of the impression, whenever the click came.", True),
    Picture("ctr", "Click-through rate by campaign", "Clicks per impression, by the hour of the impression.", True),
    Picture("delays", "Time from impression to click", "Up to the attribution window."),
    Picture("lengths", "Session length", "From a session's first event to its last."),
    Picture("endings", "How sessions end", "By a closing event (is_last), or by silence (timeout)."),
    Picture("status", "Users by status", "Each user's latest status."),
    Picture("shares", "Records that drop out", "As shares of the records received, accepted (ok) and kept."),
    Picture("verdicts", "Quarantine by verdict", "The first rule each rejected record breaks. Without those requeued."),
    Picture(
        "models",
        "Value of conversions by campaign and model",
        "What each model credits a campaign with, in the currency that most conversions have, less refunds.",
        True,
    ),
    Picture("paths", "Touches that led to a conversion", "Clicks, and views as credit.views says."),
    Picture("converting", "Time from the last touch to the conversion", "Of conversions with a touch."),
    Picture("net_clicks", "Clicks by campaign, gross and net", "Net is without what a rule marks as invalid traffic."),
    Picture("net_cost", "Cost by campaign, gross and net", "Net is without the cost of marked impressions."),
)


def write_overview(lake: OpenLake, now: datetime, *, is_validated_next: bool = False) -> str:
    """Writes the overview page into the reports of ``lake`` and returns its key.

    Args:
        lake: the lake to show.
        now: the time printed on the page, with time zone.
        is_validated_next: a validation report will be there, too; otherwise the page links to it if there is one now.
    """
    figures, credit = count_figures(lake), count_credit(lake, lake.settings.s3)
    invalid = count_invalid(lake, lake.settings.s3)
    drawn = draw(figures, credit, invalid)
    page = load_template("overview.html.j2").render(
        lake=lake,
        made_at=now,
        tiles=[*_tiles(figures), *_credit_tiles(credit), *_net_tiles(invalid)],
        credit=credit,
        invalid=invalid,
        money=_money,
        share=_share,
        pictures=[(picture, drawn[picture.name]) for picture in _PICTURES if picture.name in drawn],
        has_quality=is_validated_next or lake.files.read(f"{REPORTS}/index.html") is not None,
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


def _money(micros: int | None) -> str:
    return _NOTHING if micros is None else f"{micros / _MICROS:,.2f}"


def _share(share: float | None) -> str:
    return _NOTHING if share is None else f"{share:.1%}"


def _net_tiles(invalid: InvalidFigures | None) -> list[tuple[str, str]]:
    return [] if invalid is None else [("cost, net", f"{invalid.totals[1].cost_micros / _MICROS:,.2f}")]


def _credit_tiles(credit: CreditFigures | None) -> list[tuple[str, str]]:
    if credit is None:
        return []
    tiles = [("conversions", f"{credit.conversions:,}")]
    if credit.currency:
        tiles.append((f"value, {credit.currency}", f"{credit.value_micros / _MICROS:,.2f}"))
    return tiles
