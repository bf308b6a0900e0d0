"""Reports to OpenLineage the commits and validations since the last time: each version and each validation once.

Which span of commits is to be sent is written down before it is sent, and that it was sent afterwards. After a kill
between the two the same span is sent again, with the same id. The results of a validation never change, so of those
it is enough to know which were sent.
"""

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from datetime import datetime

from pydantic import BaseModel, ConfigDict

from spark_jobs.config.durations import EPOCH
from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import Table
from spark_jobs.contract.validation import VALIDATIONS, Validation
from spark_jobs.lake.layout import Lake, commit_key
from spark_jobs.lake.lock import Check, hold_job
from spark_jobs.lake.log import Commit, commit_in
from spark_jobs.lake.notes import committed_at
from spark_jobs.lake.records import find_record, read_record, write_record
from spark_jobs.lineage.events import VersionSpan, event_of, spans
from spark_jobs.lineage.facets import Event
from spark_jobs.lineage.validated import event_of_validation
from spark_jobs.places import LINEAGE, PROGRESS
from spark_jobs.queries.registry import QUERIES

_STATE = f"{PROGRESS}/{LINEAGE}/sent.json"


class Sent(BaseModel):
    """By table, the last reported version, and the end of a span that may have been; and the reported validations.

    Of the validations, those that the lake still has.
    """

    model_config = ConfigDict(frozen=True)

    reached: dict[str, int] = {}
    sending: dict[str, int] = {}
    validations: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Report:
    """How events of a lake are reported."""

    lake: Lake
    settings: Settings
    send: Callable[[Event], None]
    check_lock: Check
    from_now: bool


def report_new(
    lake: Lake, settings: Settings, send: Callable[[Event], None], *, from_now: bool
) -> Iterator[VersionSpan | Validation]:
    """Sends an event for each span of commits and each validation since the last time, and gives what was sent.

    Args:
        lake: the lake; jobs may be running.
        settings: name the jobs, and what arrives from outside.
        send: raises an error if it cannot.
        from_now: send nothing now, and begin with what comes next.

    Raises:
        LakeInUseError: another process is at it.
        LakeError: a log, or the results of a validation, cannot be read.
    """
    with hold_job(lake, LINEAGE, settings.s3) as check_lock:
        report = _Report(lake, settings, send, check_lock, from_now)
        sent = yield from _report_commits(report, find_record(lake, _STATE, Sent) or Sent())
        yield from _report_validations(report, sent)


def _report_commits(report: _Report, sent: Sent) -> Generator[VersionSpan, None, Sent]:
    """Reports commits. Returns what was sent after that."""
    lake = report.lake
    for query in QUERIES:
        newest = lake.newest_commit(query.writes.path)
        if newest is None:
            continue
        report.check_lock()
        name, first = query.writes.name, sent.reached.get(query.writes.name, -1) + 1
        last = sent.sending.get(name, newest)
        if not report.from_now and first <= last:
            sent = sent.model_copy(update={"sending": {**sent.sending, name: last}})
            write_record(lake, _STATE, sent)
            found, at = _read(lake, query.writes, first, last)
            for span in spans(query, first, last, found):
                report.send(event_of(span, lake, report.settings, at))
                yield span
        reached = {**sent.reached, name: newest if report.from_now else last}
        left = {other: version for other, version in sent.sending.items() if other != name}
        sent = sent.model_copy(update={"reached": reached, "sending": left})
        write_record(lake, _STATE, sent)
    return sent


def _report_validations(report: _Report, sent: Sent) -> Iterator[Validation]:
    """Reports validations. One that began earlier may end later, so the last reported one says too little."""
    lake = report.lake
    kept = [name for name in lake.files.names(VALIDATIONS) if name.endswith(".json")]
    reported = tuple(name for name in kept if report.from_now or name in sent.validations)
    for name in (one for one in kept if one not in reported):
        report.check_lock()
        remedy = "delete it, and its results are not reported"
        found = read_record(lake, f"{VALIDATIONS}/{name}", Validation, remedy=remedy)
        if found is None:
            continue  # dropped since it was listed: a validation is under way
        report.send(event_of_validation(found, lake, report.settings))
        reported = (*reported, name)
        write_record(lake, _STATE, sent.model_copy(update={"validations": reported}))
        yield found
    if reported != sent.validations:
        write_record(lake, _STATE, sent.model_copy(update={"validations": reported}))


def _read(lake: Lake, table: Table, first: int, last: int) -> tuple[list[Commit], datetime]:
    """The commits that are still in the log, oldest first, and when the last one was made."""
    found, made = list[Commit](), EPOCH
    # Delta removes old commits; their inputs were not reported in time.
    for version in (one for one in lake.commits(table.path, after=f"{first:020}") if one <= last):
        commit = lake.files.read(commit_key(table, version)) or b""
        found.append(commit_in(commit, table, version))
        made = committed_at(commit) or made
    return found, made
