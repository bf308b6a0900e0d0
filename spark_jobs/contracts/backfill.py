"""A window of the past of gold, computed anew: where it lies, and how a row of it may differ from the live one."""

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from spark_jobs.contracts.errors import SettingsError
from spark_jobs.contracts.tables import Table

BACKFILLS = "_backfills"
"""Folder of the side tables, one folder for each window."""


class Difference(StrEnum):
    """How a row of the live table and the row computed anew in its place differ."""

    SAME = "same"
    CHANGED = "changed"
    ONLY_LIVE = "only live"
    ONLY_RECOMPUTED = "only recomputed"
    OPEN = "open"
    """Computed anew, and not due yet in the live job, whose watermark has not passed it."""


@dataclass(frozen=True)
class Window:
    """Event times (with zone) from ``begin`` to before ``end``."""

    begin: datetime
    end: datetime

    def __post_init__(self) -> None:
        """Refuses what is no window.

        Raises:
            SettingsError: it has no zone, or ends before it begins.
        """
        for what, time in (("begins", self.begin), ("ends", self.end)):
            if time.tzinfo is None:
                raise SettingsError(f"the window {what} at {time}, which has no zone; write it as 2026-03-01T00:00:00Z")
        if self.begin >= self.end:
            raise SettingsError(f"the window begins at {self.begin} and ends at {self.end}; it must end later")

    @property
    def name(self) -> str:
        """As a name of a folder, in UTC."""
        return "_".join(f"{time.astimezone(UTC):%Y%m%dT%H%M%S.%fZ}" for time in (self.begin, self.end))


def recomputed_key(window: Window, table: Table) -> str:
    """Delta table of the rows computed anew, with the columns of ``table``."""
    return f"{BACKFILLS}/{window.name}/{table.name}"


def differences_key(window: Window, table: Table) -> str:
    """Delta table that tells row by row how the live table differs: see :mod:`spark_jobs.jobs.backfill`."""
    return f"{BACKFILLS}/{window.name}/{table.name}_differences"
