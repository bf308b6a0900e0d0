"""The report of a replay: how the live tables differ from a past window recomputed from bronze."""

from datetime import datetime

from pydantic import BaseModel, ConfigDict

from spark_jobs.config.durations import Window
from spark_jobs.places import REPORTS

REPLAYS = f"{REPORTS}/replays"
"""The folder of the reports: a JSON file and a page for each window."""


class CampaignDifference(BaseModel):
    """By how much the counts of a campaign would change if the differing rows were corrected; cost in micro-units."""

    model_config = ConfigDict(frozen=True)

    impressions: int
    clicks: int
    cost_micros: int


class ReplayedTable(BaseModel):
    """The findings of a replay in one table.

    ``version`` is the version of the table that was compared, ``watermark_ms`` the watermark of the query's last batch
    in it. The counts are rows of the window; a changed row counts once:

    - ``same``: it is as it should be.
    - ``late``: it differs, because an event was late and no repair has applied it, or the row is frozen.
    - ``open``: the live query may still change it.
    - ``unknown``: it differs, and nothing explains why.

    ``campaigns``: by campaign, the differences of ``late`` and ``unknown`` rows; empty if the table counts nothing by
    campaign.
    """

    model_config = ConfigDict(frozen=True)

    version: int
    watermark_ms: int
    same: int
    late: int
    open: int
    unknown: int
    campaigns: dict[str, CampaignDifference] = {}

    @property
    def audited(self) -> bool:
        """Whether every row of the window is as it should be, and final."""
        return not (self.late or self.open or self.unknown)


class Replay(BaseModel):
    """The report of a replay of the event times from ``begin`` up to, not including, ``end``.

    ``number`` is that of the plan in ``_repairs`` if it was applied; the counts are those before. A table that does not
    exist, or cannot be recomputed, is not among ``tables``.
    """

    model_config = ConfigDict(frozen=True)

    begin: datetime
    end: datetime
    decided_at: datetime
    number: int | None = None
    tables: dict[str, ReplayedTable]

    @property
    def audited(self) -> bool:
        """Whether all these tables are as they should be, and final."""
        return all(table.audited for table in self.tables.values())

    @property
    def unknown(self) -> int:
        """How many rows differ for no known reason."""
        return sum(table.unknown for table in self.tables.values())


def replay_key(window: Window, tables: tuple[str, ...] = ()) -> str:
    """The report of a window as JSON: see :class:`Replay`.

    Args:
        window: the window.
        tables: names of the chosen tables; empty: all.
    """
    return f"{REPLAYS}/{'_'.join((window.name, *tables))}.json"


def page_key(window: Window, tables: tuple[str, ...] = ()) -> str:
    """The report as a page."""
    return f"{replay_key(window, tables).removesuffix('.json')}.html"
