"""The numbers that the part shows."""

from dataclasses import dataclass
from datetime import datetime

from expectations.timelines import NOTHING, Timelines


@dataclass(frozen=True)
class TableChanges:
    """The rows of one table that were changed, and those ``frozen``: too old to be changed."""

    table: str
    inserts: int
    updates: int
    deletes: int
    frozen: int


@dataclass(frozen=True)
class CampaignChanges:
    """By how much the counts of a campaign changed, in all windows of ``campaign_stats``; cost in micro-units."""

    campaign: str
    impressions: int
    clicks: int
    cost_micros: int


@dataclass(frozen=True)
class RestatedFigures:
    """Everything the part shows.

    Attributes:
        runs: how many repairs, replays, markings and runs of credit changed anything.
        last: when the last of them was decided (UTC).
        tables: those with restatements, by name.
        campaigns: those whose cost changed most, and among equals those whose clicks did.
        campaign_count: how many campaigns changed.
        total: of all campaigns; its name is empty.
        timelines: rows changed, in rows by table and in bars by cause, at the times of decision.
    """

    runs: int
    last: datetime
    tables: tuple[TableChanges, ...]
    campaigns: tuple[CampaignChanges, ...]
    campaign_count: int
    total: CampaignChanges
    timelines: Timelines = NOTHING

    @property
    def changes(self) -> int:
        """How many rows were changed."""
        return sum(one.inserts + one.updates + one.deletes for one in self.tables)

    @property
    def frozen(self) -> int:
        """How many rows were too old to be changed."""
        return sum(one.frozen for one in self.tables)
