"""Days as assets: for each table of gold, that a day is complete, and that a complete day was restated.

The partition key of an event is the date, as in ``2026-03-01``, so a DAG that is scheduled on such an asset has a run
for each date, and one that is scheduled on two of them a run for each date of which both have told.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from airflow.sdk import Asset

from ad_dags.connection.lakes import LakeRef
from spark_jobs.contracts.days import Day
from spark_jobs.queries import QUERIES

REMEMBERED = timedelta(days=30)
"""Airflow's own events of so long are asked whether something was told; what happened earlier is not told any more."""
Extra = dict[str, Any]


class DayEvent(StrEnum):
    """What is told of a day."""

    COMPLETE = "complete"
    RESTATED = "restated"


@dataclass(frozen=True)
class DayAsset:
    """That days of ``table`` of ``lake`` are complete, or were restated."""

    lake: LakeRef
    table: str
    event: DayEvent

    @property
    def asset(self) -> Asset:
        """The asset, as DAGs name it."""
        return Asset(self.lake.named(f"adloom_{self.table}_day_{self.event.value}"))

    @property
    def task_id(self) -> str:
        """The task that tells."""
        return f"{self.table}_{self.event.value}"


_TABLES = tuple(query.writes.name for query in QUERIES if query.correction)
"""Those of gold that have days, in the order in which rows flow."""


def day_assets(lake: LakeRef) -> tuple[DayAsset, ...]:
    """All of ``lake``, in the order in which rows flow."""
    return tuple(DayAsset(lake, table, event) for table in _TABLES for event in DayEvent)


def all_complete(lake: LakeRef) -> Asset:
    """That dates are complete in all tables. Its events have no partition key, so plain schedules can wait for them."""
    return Asset(lake.named("adloom/days"))


def not_told(own: DayAsset, days: Iterable[Day], told: Mapping[str, Extra], now: datetime) -> dict[str, Extra]:
    """By date, what is still to be told by ``own``: see :func:`what_was_told`.

    Args:
        own: which table, and what of its days.
        days: rows of ``gold/days``.
        told: by date, what was told last.
        now: the wall clock.
    """
    found: dict[str, Extra] = {}
    for day in days:
        happened = day.complete_at if own.event is DayEvent.COMPLETE else day.restated_at
        key = day.event_date.isoformat()
        if day.table_name != own.table or happened is None or happened < now - REMEMBERED:
            continue
        if key not in told or (own.event is DayEvent.RESTATED and told[key].get("restated", 0) < day.restated):
            found[key] = _extra(day, own.event)
    return found


def dates_not_told(days: Iterable[Day], events: Iterable[Any], now: datetime) -> list[str]:
    """The dates that are complete in all tables, of which no event of :func:`all_complete` has told yet.

    Args:
        days: rows of ``gold/days``.
        events: the asset's events.
        now: the wall clock.
    """
    complete: dict[str, dict[str, datetime]] = {}
    for day in days:
        if day.complete_at is not None:
            complete.setdefault(day.event_date.isoformat(), {})[day.table_name] = day.complete_at
    told = {date for event in events for date in (event.extra or {}).get("dates", ())}
    return sorted(
        date
        for date, at in complete.items()
        if at.keys() >= set(_TABLES) and max(at.values()) >= now - REMEMBERED and date not in told
    )


def _extra(day: Day, event: DayEvent) -> Extra:
    extra: Extra = {"table": day.table_name, "version": day.version}
    if event is DayEvent.RESTATED:
        names = ("restated", "changes", "impressions", "clicks", "cost_micros")
        extra |= {name: getattr(day, name) for name in names}
    return extra


def what_was_told(events: Iterable[Any]) -> dict[str, Extra]:
    """By date, what the last of ``events`` (Airflow's asset events, oldest first) told of it.

    A task gives all its events one ``extra``, so this has a part for each date.
    """
    return {
        event.partition_key: dict((event.extra or {}).get(event.partition_key) or {})
        for event in events
        if event.partition_key
    }
