"""When a day is done: keeps ``gold/days`` up to date.

An update first looks without Spark: at the notes in the commits, at the dates of new files of silver, at whether
repairs have recorded something new, and at reports of replays. It starts Spark only if a status follows that
``gold/days`` does not have, or if rows must be read to find out.

**Exactly once.** The table is replaced in one commit, under a lock, by rows that follow from what the lake holds. An
update that was killed has changed nothing or all; the next one finds what is left to do, or nothing.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import astuple, replace
from datetime import UTC, date, datetime

from pyspark.sql import functions as F

from spark_jobs.config.settings import Settings
from spark_jobs.contract.events import HEARTBEAT
from spark_jobs.contract.tables import DAYS, SILVER_EVENTS
from spark_jobs.days.day import DAYS_SEEN, Day, DaysSeen, dates_in
from spark_jobs.days.evidence import DaysSnapshot, take_snapshot
from spark_jobs.days.restated import changes_since, first_open
from spark_jobs.days.status import Evidence, all_days, days_of, next_days
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.notes import CommitNote
from spark_jobs.lake.records import find_record, write_record
from spark_jobs.places import DAYS_WRITER
from spark_jobs.spark.open_lake import OpenLake
from spark_jobs.spark.write_delta import replace_all

StartSpark = Callable[[], AbstractContextManager[OpenLake]]


def update_days(lake: Lake, settings: Settings, start_spark: StartSpark) -> list[Day]:
    """Brings ``gold/days`` up to date, and gives its rows. Jobs may be running.

    Args:
        lake: the lake.
        settings: those of the live jobs.
        start_spark: called only if something has to be written, or looked at row by row.

    Raises:
        LakeInUseError: another process is updating it.
        LakeError: the table cannot be read.
    """
    seen, now = find_record(lake, DAYS_SEEN, DaysSeen), datetime.now(UTC)
    look = take_snapshot(lake, settings, seen)
    if not look.needs_spark:
        days = next_days(look.days, _evidence(look, settings, now))
        if days == look.days:
            _remember(lake, look, seen)
            return days
    with start_spark() as opened:
        return update_days_with(opened)


def update_days_with(lake: OpenLake) -> list[Day]:
    """As :func:`update_days`, with a session that is there anyway."""
    with lake.hold(DAYS_WRITER) as check_lock:
        seen, now = find_record(lake, DAYS_SEEN, DaysSeen), datetime.now(UTC)
        look = take_snapshot(lake, lake.settings, seen)
        if look.event_dates is None:
            look = replace(look, event_dates=_event_dates(lake, look))
        evidence = _evidence(look, lake.settings, now)
        if look.has_more_restatements:
            evidence = replace(evidence, changes=changes_since(lake, look))
        every = all_days(look.days, evidence)
        standings = [first_open(lake, one, every) for one in evidence.standings]
        days = next_days(look.days, replace(evidence, standings=standings))
        if days != look.days:
            check_lock()
            rows = lake.spark.createDataFrame([astuple(day) for day in days], DAYS.ddl)
            note = CommitNote(writer=DAYS_WRITER, batch=(lake.newest_commit(DAYS.path) or 0) + 1)
            replace_all(rows.coalesce(1), lake, DAYS, note)
        _remember(lake, look, seen)
    return days


def _evidence(look: DaysSnapshot, settings: Settings, now: datetime) -> Evidence:
    return Evidence(
        standings=look.standings,
        dates=days_of(dates_in(look.event_dates or (), settings.days.zone), look.passed),
        last_repair=look.last_repair,
        changes=None,
        audits=look.audits,
        freeze_after=settings.repair.freeze_after,
        now=now,
        zone=settings.days.zone,
    )


def _event_dates(lake: OpenLake, look: DaysSnapshot) -> frozenset[date]:
    """The dates of all events in silver."""
    silver = lake.read(SILVER_EVENTS, version=look.silver_version)
    dates = silver.where(F.col("event_type") != HEARTBEAT).select("event_date").distinct()
    return frozenset(row.event_date for row in dates.collect())


def _remember(lake: Lake, look: DaysSnapshot, seen: DaysSeen | None) -> None:
    if not look.event_dates or look.silver_version is None:
        return
    now_seen = DaysSeen(
        silver_version=look.silver_version,
        first=min(look.event_dates),
        last=max(look.event_dates),
        dates=tuple(sorted(look.event_dates)),
        restatements_version=look.restatements_version,
    )
    if now_seen != seen:
        write_record(lake, DAYS_SEEN, now_seen)
