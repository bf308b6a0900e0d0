"""The evidence for the status of days that can be read without Spark."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from pydantic import ValidationError

from spark_jobs.config.settings import Settings
from spark_jobs.contract.events import HEARTBEAT
from spark_jobs.contract.tables import RESTATEMENTS, SILVER_EVENTS
from spark_jobs.days.day import Day, DaysSeen, DayStatus, date_in, read_days
from spark_jobs.days.status import Audit, TableProgress, passed
from spark_jobs.errors import LakeError
from spark_jobs.lake.batch import Batch
from spark_jobs.lake.batches import read_batches
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.log import commits
from spark_jobs.lake.notes import CommitNote, version_reached
from spark_jobs.queries.deduplicate.query import QUERY as DEDUPLICATE
from spark_jobs.queries.notes import last_note
from spark_jobs.queries.query import Query
from spark_jobs.queries.registry import QUERIES
from spark_jobs.restatements.plans import GOLD_PLANS
from spark_jobs.restatements.replay_model import REPLAYS, Replay

_DAY = timedelta(days=1)
_NAME = re.compile(r"(\d{8}T\d{6}\.\d{6}Z)_(\d{8}T\d{6}\.\d{6}Z)(_[a-z_]+)?\.json")
_TIME = "%Y%m%dT%H%M%S.%fZ"


@dataclass(frozen=True)
class DaysSnapshot:
    """The findings of one look at the lake.

    Attributes:
        days: the rows of ``gold/days``, in the time zone of the settings.
        standings: of the tables that have days; what is still open past their watermark is not known yet.
        silver_version: the version of silver that was looked at; None: there is no silver.
        event_dates: the dates (UTC) of its events; None: not known.
        passed: the last date that the watermark of ``deduplicate`` has passed, even if nothing happened on it; None:
            there is no watermark.
        restatements_version: the version of ``gold/restatements``; -1 without one.
        has_more_restatements: whether some were recorded since ``gold/days`` counted them.
        last_repair: number of the last repair that is done; 0 without one.
        audits: replays that agreed.
    """

    days: list[Day]
    standings: list[TableProgress]
    silver_version: int | None
    event_dates: frozenset[date] | None
    passed: date | None
    restatements_version: int
    has_more_restatements: bool
    last_repair: int
    audits: list[Audit]

    @property
    def needs_spark(self) -> bool:
        """Whether rows must be looked at."""
        lasting = {query.writes.name for query in QUERIES if query.outlives_watermark}
        has_passed = any(passed(self.days, standing) for standing in self.standings if standing.table in lasting)
        return self.event_dates is None or self.has_more_restatements or has_passed


def take_snapshot(lake: Lake, settings: Settings, seen: DaysSeen | None) -> DaysSnapshot:
    """Looks at ``lake``; ``seen`` is what the last update looked at, None if that is not known.

    Raises:
        LakeError: ``gold/days`` cannot be read.
    """
    # Before the tables: what restates a day after this look is looked at by the next one.
    restatements = lake.newest_commit(RESTATEMENTS.path)
    restated = -1 if restatements is None else restatements
    silver_version = lake.newest_commit(SILVER_EVENTS.path)
    event_dates = _event_dates(lake, silver_version, seen)
    zone, upstream = settings.days.zone, _watermark(last_note(lake, DEDUPLICATE.name))
    days = read_days(lake, zone=zone)
    return DaysSnapshot(
        days=days,
        standings=[found for query in QUERIES if (found := _standing(lake, settings, query))],
        silver_version=silver_version,
        event_dates=event_dates,
        passed=date_in(upstream, zone) - _DAY if upstream else None,
        restatements_version=restated,
        has_more_restatements=restated > (seen.restatements_version if seen else -1),
        last_repair=GOLD_PLANS.last_done(lake),
        audits=read_audits(lake, days),
    )


def _standing(lake: Lake, settings: Settings, query: Query) -> TableProgress | None:
    """Where the table of ``query`` stands; None: it has no days, or no batch yet."""
    delay = query.watermark(settings)
    if not query.is_correctable or delay is None or not lake.has(query.writes):
        return None
    version = lake.newest_commit(query.writes.path) or 0
    note = last_note(lake, query.name, until=version)
    if note is None:
        return None
    return TableProgress(
        table=query.writes.name,
        version=version,
        watermark=note.watermark,
        # Spark drops what lies behind the watermark of the batch before: later batches keep nothing behind this one.
        upstream=_watermark(last_note(lake, DEDUPLICATE.name, until=min(map(version_reached, note.reached)))),
        has_upstream=DEDUPLICATE.watermark(settings) is not None,
        holds=query.closes_after(settings) - delay,
    )


def _watermark(note: CommitNote | None) -> datetime | None:
    return note.watermark if note else None


def _event_dates(lake: Lake, version: int | None, seen: DaysSeen | None) -> frozenset[date] | None:
    """The dates of events in silver up to ``version``, from what was ``seen`` and newer commits; None: not known."""
    if version is None:
        return frozenset()
    if seen is None or not seen.dates or seen.silver_version > version:
        return None
    silver = read_batches(lake, SILVER_EVENTS, lambda found: found.begins <= seen.silver_version + 1)
    if seen.silver_version + 1 < silver.begins:
        return None  # the log was cleaned up to here
    try:
        newer = [_dates_in(lake, batch) for batch in silver.of(seen.silver_version + 1, version)]
    except LakeError:
        return None  # as above, and what is left of it does not name each date
    return frozenset(seen.dates).union(*newer)


def _dates_in(lake: Lake, batch: Batch) -> set[date]:
    """The dates of events that ``batch`` has added to silver.

    Raises:
        LakeError: its commits are gone.
    """
    if batch.first_date is None or batch.last_date is None:
        return set()
    if batch.last_date - batch.first_date <= _DAY:
        return {batch.first_date, batch.last_date}
    found = commits(lake, SILVER_EVENTS, batch.first_version, batch.version)
    files = [file.partition for commit in found for file in commit.added if file.rows != 0]
    return {date.fromisoformat(one["event_date"] or "") for one in files if one["event_type"] != HEARTBEAT}


def read_audits(lake: Lake, days: Collection[Day]) -> list[Audit]:
    """The replays in ``lake`` that agreed with a table and can make one of ``days`` audited.

    A window's report is replaced when the window is replayed again, so what was read before may be another one now.
    A report that is damaged, or of another version, says nothing.
    """
    wanted = [day for day in days if day.status in (DayStatus.COMPLETE, DayStatus.RESTATED)]
    if not wanted:
        return []
    found = []
    for name in lake.files.names(REPLAYS):
        window = _NAME.fullmatch(name)
        if window is None:
            continue
        begin, end = (datetime.strptime(text, _TIME).replace(tzinfo=UTC) for text in window.groups()[:2])
        if any(begin <= day.start and day.end <= end for day in wanted):
            found += _agreed(lake.files.read(f"{REPLAYS}/{name}") or b"")
    return found


def _agreed(text: bytes) -> list[Audit]:
    try:
        report = Replay.model_validate_json(text)
    except ValidationError:
        return []
    agreed = (name for name, one in report.tables.items() if one.audited)
    return [Audit(name, report.begin, report.end, report.decided_at) for name in agreed]
