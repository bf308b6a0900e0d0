"""What is wanted of the jobs of a lake, and who watches over them."""

from datetime import datetime

from pydantic import BaseModel, ConfigDict, ValidationError

from spark_jobs.contracts.errors import LakeError
from spark_jobs.contracts.lake import Lake
from spark_jobs.contracts.wanted import Wanted, WantedState, wanted_key, watcher_key


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
    text = lake.files.read(wanted_key(job))
    if text is None:
        return None
    try:
        return Wanted.model_validate_json(text)
    except ValidationError as error:
        raise LakeError(
            f"{lake.place(wanted_key(job))} is damaged: {error.errors()[0]['msg']}; start or drain the job anew"
        ) from error


def want(lake: Lake, job: str, state: WantedState, why: str, now: datetime, *, until: datetime | None = None) -> Wanted:
    """Says what is wanted of ``job`` from ``now`` on; ``until`` makes a stop a pause."""
    wanted = Wanted(state=state, why=why, since=now, until=until)
    lake.files.write(wanted_key(job), wanted.model_dump_json(indent=2).encode() + b"\n")
    return wanted


def watch(lake: Lake, job: str, name: str, now: datetime) -> None:
    """Leaves word that ``name`` watches over ``job``."""
    lake.files.write(watcher_key(job), Watcher(name=name, looked_at=now).model_dump_json().encode() + b"\n")


def read_watcher(lake: Lake, job: str) -> Watcher | None:
    """Who last watched over ``job``; None if nobody did, or left no word that can be read."""
    try:
        return Watcher.model_validate_json(lake.files.read(watcher_key(job)) or b"")
    except ValidationError:
        return None
