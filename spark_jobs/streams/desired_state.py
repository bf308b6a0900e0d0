"""The desired state of a job: whether people want it to run, whatever its processes do."""

from datetime import datetime, timedelta
from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from spark_jobs.lake.layout import Lake
from spark_jobs.lake.records import find_record, read_record, write_record
from spark_jobs.places import PROGRESS

UNWATCHED_AFTER = timedelta(minutes=2)
"""A job that no watcher has looked at for this long is unwatched: nobody starts or stops it."""


class RunState(StrEnum):
    """The state in which a job should be."""

    RUNNING = "running"
    STOPPED = "stopped"
    FAILED = "failed"
    """It should run, but restarts do not help: it stays as it is until somebody starts it."""


class DesiredState(BaseModel):
    """The desired state of a job, and why. Times are UTC."""

    model_config = ConfigDict(frozen=True)

    state: RunState
    why: str
    """Who wants it, and what for; for people to read."""
    since: datetime
    until: datetime | None = None
    """The end of a pause: when the job is to run again even if whoever paused it does not resume it."""
    is_marked: bool = False
    """Whether it was stopped by marking, or clearing, the task that watches over it."""

    @property
    def is_paused(self) -> bool:
        """Whether the job is stopped for a limited time."""
        return self.until is not None

    def runs_at(self, now: datetime) -> bool:
        """Whether the job is to run at ``now``."""
        return self.state is RunState.RUNNING or (self.until is not None and now >= self.until)


def desired_key(job: str) -> str:
    """The desired state of ``job``, as JSON."""
    return f"{PROGRESS}/{job}/wanted.json"


def stop_key(job: str) -> str:
    """The request that asks the driver of ``job`` to stop, for drivers that no signal reaches; JSON."""
    return f"{PROGRESS}/{job}/stop.json"


def watch_key(job: str) -> str:
    """Who watches ``job``, and what it remembers; JSON."""
    return f"{PROGRESS}/{job}/watcher.json"


class Watch(BaseModel):
    """The watch over a job: who looked last, and what the next look must know. Times are UTC."""

    model_config = ConfigDict(frozen=True)

    name: str
    looked_at: datetime
    started_at: datetime | None = None
    """When it last started the driver; None: not since somebody asked for the job."""
    restarts: int = 0
    """Restarts in a row, without the driver recovering in between."""
    start_at: datetime | None = None
    """The end of the pause before the next start."""


class _StopRecord(BaseModel):
    """A request to a driver to finish its batches and stop, and when it was made (UTC)."""

    model_config = ConfigDict(frozen=True)

    at: datetime


def read_desired(lake: Lake, job: str) -> DesiredState | None:
    """The desired state of ``job``; None if nobody has ever asked for one.

    Raises:
        LakeError: the record is damaged.
    """
    return read_record(lake, desired_key(job), DesiredState, remedy="start or stop the job again to replace it")


def set_desired(
    lake: Lake,
    job: str,
    state: RunState,
    why: str,
    now: datetime,
    *,
    until: datetime | None = None,
    is_marked: bool = False,
) -> DesiredState:
    """Records the desired state of ``job`` from ``now`` on; ``until`` makes a stop a pause."""
    wanted = DesiredState(state=state, why=why, since=now, until=until, is_marked=is_marked)
    write_record(lake, desired_key(job), wanted)
    return wanted


def write_watch(lake: Lake, job: str, watch: Watch) -> None:
    """Records a look at ``job``."""
    write_record(lake, watch_key(job), watch)


def read_watch(lake: Lake, job: str) -> Watch | None:
    """The watch over ``job``; None if nobody watches it, or the record is damaged."""
    return find_record(lake, watch_key(job), Watch)


def is_watched(lake: Lake, job: str, now: datetime, *, patience: timedelta = UNWATCHED_AFTER) -> bool:
    """Whether a watcher has looked at ``job`` within ``patience``."""
    watch = read_watch(lake, job)
    return watch is not None and now - watch.looked_at <= patience


def request_stop(lake: Lake, job: str, now: datetime) -> None:
    """Asks the driver of ``job``, wherever it runs, to finish its batches and stop."""
    write_record(lake, stop_key(job), _StopRecord(at=now))


def stop_requested_at(lake: Lake, job: str) -> datetime | None:
    """When the driver of ``job`` was asked to stop; None if it was not."""
    record = find_record(lake, stop_key(job), _StopRecord)
    return record.at if record else None


def clear_stop_request(lake: Lake, job: str) -> None:
    """Removes the request made to an earlier driver of ``job``."""
    lake.files.delete([stop_key(job)])
