"""Replays: a past window of gold recomputed from bronze, and what the comparison with the live tables found."""

from datetime import datetime

from pydantic import BaseModel, ConfigDict

from spark_jobs.config.durations import Window
from spark_jobs.places import REPORTS

REPLAYS = f"{REPORTS}/replays"
"""Folder of the reports: per window a JSON file, and a page beside it."""


class CampaignDifference(BaseModel):
    """By how much counts of a campaign would change if what differs were put right; cost in micro-units."""

    model_config = ConfigDict(frozen=True)

    impressions: int
    clicks: int
    cost_micros: int


class ReplayedTable(BaseModel):
    """What a replay found in one table.

    ``version`` is the version of the table that was compared, ``watermark_ms`` the watermark of the query's last batch
    in it. The counts are rows of the window; a changed row counts once:

    - ``same``: it is as it should be.
    - ``late``: it differs, because an event came too late and no repair has brought it in, or the row is frozen.
    - ``open``: the live query may still change it.
    - ``unknown``: it differs, and nothing explains why.

    ``campaigns``: by campaign, the differences of what is ``late`` or ``unknown``; empty if the table counts nothing by
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

    ``number`` is that of the changes in ``_repairs`` if they were applied; the counts are those before. A table that
    does not exist, or cannot be recomputed, is not among ``tables``.
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
        """How many rows differ and nothing explains why."""
        return sum(table.unknown for table in self.tables.values())


def replay_key(window: Window, tables: tuple[str, ...] = ()) -> str:
    """The report of a window as JSON: see :class:`Replay`.

    Args:
        window: which.
        tables: names of the tables that were chosen; none: all.
    """
    return f"{REPLAYS}/{'_'.join((window.name, *tables))}.json"


def page_key(window: Window, tables: tuple[str, ...] = ()) -> str:
    """The report as a page."""
    return f"{replay_key(window, tables).removesuffix('.json')}.html"
