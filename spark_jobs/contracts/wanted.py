"""Whether a job is to run: what people want, whatever its processes do."""

from datetime import datetime
from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from spark_jobs.contracts.lake import PROGRESS


class WantedState(StrEnum):
    """What is wanted of a job."""

    RUNNING = "running"
    STOPPED = "stopped"


class Wanted(BaseModel):
    """What is wanted of a job, and why. Times are UTC."""

    model_config = ConfigDict(frozen=True)

    state: WantedState
    why: str
    """Who wants it, and what for; for people."""
    since: datetime
    until: datetime | None = None
    """Of a pause: when the job is to run again, should whoever asked for the pause not come back."""

    @property
    def is_paused(self) -> bool:
        """Whether it is stopped for a while only."""
        return self.until is not None

    def runs_at(self, now: datetime) -> bool:
        """Whether the job is to run at ``now``."""
        return self.state is WantedState.RUNNING or (self.until is not None and now >= self.until)


def wanted_key(job: str) -> str:
    """What is wanted of ``job``, as JSON."""
    return f"{PROGRESS}/{job}/wanted.json"


def stop_key(job: str) -> str:
    """Is there while the driver of ``job`` is asked to stop, for drivers that no signal reaches."""
    return f"{PROGRESS}/{job}/stop.json"


def watcher_key(job: str) -> str:
    """When the one that watches over ``job`` last did so, as JSON."""
    return f"{PROGRESS}/{job}/watcher.json"
