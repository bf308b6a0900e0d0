"""Tells OpenLineage what was committed since the last time: each version of each table once.

Which span is to be sent is written down before it is sent, and that it was sent afterwards. After a kill between the
two the same span is sent again, with the same id.
"""

from collections.abc import Callable, Iterator
from datetime import datetime

from pydantic import BaseModel, ConfigDict

from spark_jobs.contracts.durations import EPOCH
from spark_jobs.contracts.places import PROGRESS
from spark_jobs.contracts.settings import Settings
from spark_jobs.contracts.tables import Table
from spark_jobs.lake.changes import Change, change_in
from spark_jobs.lake.commits import committed_at
from spark_jobs.lake.layout import Lake, commit_key
from spark_jobs.lineage.events import Event, Span, event_of, spans
from spark_jobs.queries import QUERIES
from spark_jobs.runtime.lock import hold_job
from spark_jobs.runtime.records import find_record, write_record

LINEAGE = "lineage"
"""In place of a job's name, in the lock of :func:`spark_jobs.contracts.places.lock_key`."""
_STATE = f"{PROGRESS}/{LINEAGE}/sent.json"


class Sent(BaseModel):
    """By table, the last version that was told, and the end of a span that may have been."""

    model_config = ConfigDict(frozen=True)

    reached: dict[str, int] = {}
    sending: dict[str, int] = {}


def tell(lake: Lake, settings: Settings, send: Callable[[Event], None], *, from_now: bool) -> Iterator[Span]:
    """Sends an event for each span of commits since the last time, and gives the spans that were sent.

    Args:
        lake: the lake; jobs may be running.
        settings: name the jobs, and what arrives from outside.
        send: raises an error if it cannot.
        from_now: send nothing now, and begin with what comes next.

    Raises:
        LakeInUseError: another process is at it.
        LakeError: a log cannot be read.
    """
    with hold_job(lake, LINEAGE, settings.s3) as check_lock:
        sent = find_record(lake, _STATE, Sent) or Sent()
        for query in QUERIES:
            newest = lake.newest_commit(query.writes.path)
            if newest is None:
                continue
            check_lock()
            name, first = query.writes.name, sent.reached.get(query.writes.name, -1) + 1
            last = sent.sending.get(name, newest)
            if not from_now and first <= last:
                sent = sent.model_copy(update={"sending": {**sent.sending, name: last}})
                write_record(lake, _STATE, sent)
                found, at = _read(lake, query.writes, first, last)
                for span in spans(query, first, last, found):
                    send(event_of(span, lake, settings, at))
                    yield span
            left = {other: version for other, version in sent.sending.items() if other != name}
            sent = Sent(reached={**sent.reached, name: newest if from_now else last}, sending=left)
            write_record(lake, _STATE, sent)


def _read(lake: Lake, table: Table, first: int, last: int) -> tuple[list[Change], datetime]:
    """The commits that are still in the log, oldest first, and when the last one was made."""
    found, made = list[Change](), EPOCH
    # Delta removes old commits; what they were made of was not told in time.
    for version in (one for one in lake.commits(table.path) if first <= one <= last):
        commit = lake.files.read(commit_key(table, version)) or b""
        found.append(change_in(commit, table, version))
        made = committed_at(commit) or made
    return found, made
