"""What starts, drains and looks at drivers, which are programs of their own."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol


class LauncherError(Exception):
    """Raised when a launcher does not answer, or refuses; the text is meant for the user."""


class DriverState(StrEnum):
    """Where a driver stands."""

    STARTING = "starting"
    """Too young to be trusted."""
    RUNNING = "running"
    DRAINING = "draining"
    """It finishes its batches."""
    STOPPED = "stopped"
    """Nobody wants it to run, or it came to its end by itself, well."""
    RETRYING = "retrying"
    """It failed, and is started again after a pause."""
    GIVEN_UP = "given up"
    """It failed each time it was started."""

    @property
    def is_alive(self) -> bool:
        """Whether there is a process."""
        return self in (DriverState.STARTING, DriverState.RUNNING, DriverState.DRAINING)


@dataclass(frozen=True)
class Driver:
    """A driver as it is now. ``since`` (UTC) is when it came into this state; ``told`` says more, in words."""

    job: str
    state: DriverState
    process_id: int | None
    since: datetime | None
    told: str


class Launcher(Protocol):
    """Runs drivers, at most one for each job. Every method raises a LauncherError if it is not done."""

    def start(self, job: str) -> None:
        """Has the driver of ``job`` started, unless it is; returns before it is up."""
        ...

    def drain(self, job: str) -> None:
        """Asks the driver of ``job`` to finish its batches and stop, if there is one; returns at once."""
        ...

    def look(self, job: str) -> Driver:
        """The driver of ``job``."""
        ...

    def log(self, job: str, last_bytes: int = 20_000) -> str:
        """The end of what the driver of ``job`` told."""
        ...
