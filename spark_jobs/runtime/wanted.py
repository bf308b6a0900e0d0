"""What is wanted of the jobs of a lake, and who watches over them."""

from datetime import datetime

from pydantic import BaseModel, ConfigDict

from spark_jobs.contracts.lake import Lake
from spark_jobs.contracts.wanted import Wanted, WantedState, stop_key, wanted_key, watcher_key
from spark_jobs.runtime.records import find_record, read_record, write_record


class Watcher(BaseModel):
    """The one that watches over a job: its name, and when it last looked (UTC)."""

    model_config = ConfigDict(frozen=True)

    name: str
    looked_at: datetime


def read_wanted(lake: Lake, job: str) -> Wanted | None:
    """What is wanted of ``job``; None if nobody has said so yet.

    Raises:
        LakeError: nobody can tell.
    """
    return read_record(lake, wanted_key(job), Wanted, remedy="start or drain the job anew")


def want(lake: Lake, job: str, state: WantedState, why: str, now: datetime, *, until: datetime | None = None) -> Wanted:
    """Says what is wanted of ``job`` from ``now`` on; ``until`` makes a stop a pause."""
    wanted = Wanted(state=state, why=why, since=now, until=until)
    write_record(lake, wanted_key(job), wanted)
    return wanted


def watch(lake: Lake, job: str, name: str, now: datetime) -> None:
    """Leaves word that ``name`` watches over ``job``."""
    write_record(lake, watcher_key(job), Watcher(name=name, looked_at=now))


def read_watcher(lake: Lake, job: str) -> Watcher | None:
    """Who last watched over ``job``; None if nobody did, or left no word that can be read."""
    return find_record(lake, watcher_key(job), Watcher)


class StopWish(BaseModel):
    """That a driver is asked to finish its batches and stop, and since when (UTC)."""

    model_config = ConfigDict(frozen=True)

    at: datetime


def ask_to_stop(lake: Lake, job: str, now: datetime) -> None:
    """Asks the driver of ``job``, wherever it runs, to finish its batches and stop."""
    write_record(lake, stop_key(job), StopWish(at=now))


def asked_to_stop(lake: Lake, job: str) -> datetime | None:
    """Since when the driver of ``job`` is asked to stop; None if it is not."""
    wish = find_record(lake, stop_key(job), StopWish)
    return wish.at if wish else None


def forget_wish_to_stop(lake: Lake, job: str) -> None:
    """Takes back what an earlier driver of ``job`` was asked."""
    lake.files.delete([stop_key(job)])
