"""A recomputed window of gold: where it is stored, and how its rows may differ from the live ones."""

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from spark_jobs.contracts.errors import SettingsError
from spark_jobs.contracts.tables import Table

BACKFILLS = "_backfills"
"""Folder of the recomputed tables, one folder per window."""


class Difference(StrEnum):
    """How a row of the live table and the recomputed row with its key differ."""

    SAME = "same"
    CHANGED = "changed"
    ONLY_LIVE = "only live"
    ONLY_RECOMPUTED = "only recomputed"
    OPEN = "open"
    """Recomputed, but not due yet in the live job: its watermark has not passed the row."""


@dataclass(frozen=True)
class Window:
    """Event times (with zone) from ``begin`` up to, not including, ``end``."""

    begin: datetime
    end: datetime

    def __post_init__(self) -> None:
        """Refuses an invalid window.

        Raises:
            SettingsError: a bound has no zone, or the window does not end after it begins.
        """
        for what, time in (("begins", self.begin), ("ends", self.end)):
            if time.tzinfo is None:
                raise SettingsError(f"the window {what} at {time}, which has no zone; write it as 2026-03-01T00:00:00Z")
        if self.begin >= self.end:
            raise SettingsError(f"the window begins at {self.begin} and ends at {self.end}; it must end later")

    @property
    def name(self) -> str:
        """The name of its folder, in UTC."""
        return "_".join(f"{time.astimezone(UTC):%Y%m%dT%H%M%S.%fZ}" for time in (self.begin, self.end))


def recomputed_key(window: Window, table: Table) -> str:
    """Delta table of the recomputed rows, with the columns of ``table``."""
    return f"{BACKFILLS}/{window.name}/{table.name}"


def differences_key(window: Window, table: Table) -> str:
    """Delta table of the comparison with the live table, row by row: see :mod:`spark_jobs.jobs.backfill`."""
    return f"{BACKFILLS}/{window.name}/{table.name}_differences"
