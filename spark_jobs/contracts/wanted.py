"""Whether a job is to run: what people want, whatever its processes do."""

from datetime import datetime
from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from spark_jobs.contracts.places import PROGRESS


class WantedState(StrEnum):
    """The state that a job is wanted to be in."""

    RUNNING = "running"
    STOPPED = "stopped"


class Wanted(BaseModel):
    """What is wanted of a job, and why. Times are UTC."""

    model_config = ConfigDict(frozen=True)

    state: WantedState
    why: str
    """Who wants it, and what for; for people to read."""
    since: datetime
    until: datetime | None = None
    """The end of a pause: when the job is to run again even if whoever paused it does not resume it."""

    @property
    def is_paused(self) -> bool:
        """Whether the job is stopped for a limited time."""
        return self.until is not None

    def runs_at(self, now: datetime) -> bool:
        """Whether the job is to run at ``now``."""
        return self.state is WantedState.RUNNING or (self.until is not None and now >= self.until)


def wanted_key(job: str) -> str:
    """Where the lake keeps what is wanted of ``job``, as JSON."""
    return f"{PROGRESS}/{job}/wanted.json"


def stop_key(job: str) -> str:
    """The request that asks the driver of ``job`` to stop, for drivers that no signal reaches; JSON."""
    return f"{PROGRESS}/{job}/stop.json"


def watcher_key(job: str) -> str:
    """Who watches ``job``, and when it last looked; JSON."""
    return f"{PROGRESS}/{job}/watcher.json"
