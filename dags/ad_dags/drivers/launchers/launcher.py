"""The interface to what starts, stops and inspects drivers. A driver is a program of its own, not an Airflow task."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol


class LauncherError(Exception):
    """Raised when a launcher does not answer, or refuses a request; the text is meant for the user."""


class DriverState(StrEnum):
    """The state of a driver."""

    STARTING = "starting"
    """It was started, and has no process yet."""
    RUNNING = "running"
    STOPPING = "stopping"
    """It was asked to stop and is finishing its batches, or should be."""
    STOPPED = "stopped"
    """It was stopped, or ended by itself without an error."""
    FAILED = "failed"
    """It ended with an error, or could not be started. Launchers do not restart it."""

    @property
    def is_alive(self) -> bool:
        """Whether there is a process."""
        return self in (DriverState.STARTING, DriverState.RUNNING, DriverState.STOPPING)


@dataclass(frozen=True)
class Driver:
    """A driver as it is now. ``since`` (UTC) is when it entered this state; ``detail`` is the launcher's own text."""

    job: str
    state: DriverState
    process_id: int | None
    since: datetime | None
    detail: str


class Launcher(Protocol):
    """Runs drivers, at most one per job. Every method raises a LauncherError if it cannot do what it says."""

    def start(self, job: str) -> None:
        """Starts the driver of ``job`` unless there is one; returns before it is up."""
        ...

    def stop(self, job: str) -> None:
        """Asks the driver of ``job``, if there is one, to finish its batches and stop; returns at once.

        Call it again until the driver is gone: one that takes too long is killed.
        """
        ...

    def inspect(self, job: str) -> Driver:
        """The driver of ``job``."""
        ...

    def log(self, job: str, last_bytes: int = 20_000) -> str:
        """The end of the log of the driver of ``job``."""
        ...
