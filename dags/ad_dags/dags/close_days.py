"""Finds out which days are done, and starts the DAGs that wait for them.

Every ten minutes it brings `gold/days` up to date, the table that says for each table of gold and each date whether the
day is open, complete, audited, restated or frozen; Spark starts only if something has changed. The log has it as a grid
of tables and dates. Then it announces each day that became complete, and each complete day that a repair or a replay
has restated, by the assets

- `adloom_<table>_day_complete`, once for each date;
- `adloom_<table>_day_restated`, once for each time that the date was restated (if it was restated twice between two
  runs, once for both).

The partition key of an event is the date, as in `2026-03-01`. A DAG with the schedule `PartitionedAssetTimetable` on
such an asset runs once for each date; on two of them, once for each date that both have announced.

The asset `adloom/days` is for DAGs with a plain schedule: one event, without a partition key, for all dates that are
complete, since the event before, in all tables that have days in this lake. Its `extra` has them as `dates`.

Airflow's own record of events says what was announced, so nothing is announced twice and a run that fails leaves
nothing out. Keep the asset events of 30 days when you clean Airflow's database: older changes are no longer announced.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from airflow.sdk import DAG, Asset, task
from airflow.sdk.exceptions import AirflowSkipException

from ad_dags.clock import utc_now
from ad_dags.commands import run_adloom
from ad_dags.connection.lake_connection import connect_started
from ad_dags.connection.lakes import LakeRef
from ad_dags.defaults import DagDefaults
from spark_jobs.days.day import Day, read_days
from spark_jobs.days.missed import day_asset
from spark_jobs.lake.layout import Lake
from spark_jobs.queries.registry import QUERIES

REMEMBERED = timedelta(days=30)
"""How far back Airflow's own events say what was announced; what happened earlier is no longer announced."""
Extra = dict[str, Any]


class DayEvent(StrEnum):
    """The kinds of announcements about a day."""

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
        return Asset(self.lake.named(day_asset(self.table, self.event.value)))

    @property
    def task_id(self) -> str:
        """The task that announces it."""
        return f"{self.table}_{self.event.value}"


_TABLES = tuple(query.writes.name for query in QUERIES if query.is_correctable)
"""Those of gold that have days, in the order in which rows flow."""


def declare(own: DagDefaults) -> DAG:
    """The DAG, for the lake of ``own``."""
    # On Postgres, two assets that are announced at the same moment each make half of the run of a DAG that waits for
    # both, and none starts: https://github.com/apache/airflow/issues/71070.
    with own.dag("close_days", __doc__, tag="quality", schedule="*/10 * * * *", is_serial=True) as dag:
        complete, days = all_complete(own.lake), day_assets(own.lake)
        inlets = [complete, *(day.asset for day in days)]
        updated = task.branch(inlets=inlets, pool=own.pool)(update_days)(own.lake)
        for day in days:
            announcing = task(task_id=day.task_id, inlets=[day.asset], outlets=[day.asset])(announce)
            updated >> announcing(own.lake, day.table, day.event.value)
        updated >> task(inlets=[complete], outlets=[complete])(announce_complete_dates)(own.lake)
    return dag


def update_days(lake: LakeRef, *, inlet_events: Any = None) -> list[str]:
    """Brings ``gold/days`` up to date. Returns the tasks that have something to announce."""
    connection = connect_started(lake)
    run_adloom(connection, ["days"], changes_lake=True)
    due = [own.task_id for own in day_assets(lake) if _due(connection.lake, own, inlet_events)]
    is_date_due = _due_dates(connection.lake, all_complete(lake), inlet_events)
    return [*due, announce_complete_dates.__name__] if is_date_due else due


def announce(
    lake: LakeRef, table: str, event: str, *, inlet_events: Any = None, outlet_events: Any = None
) -> list[str]:
    """Emits an event for each date of ``table`` that was not announced. Returns the dates."""
    own = DayAsset(lake, table, DayEvent(event))
    due = _due(connect_started(lake).lake, own, inlet_events)
    if not due:
        # Airflow would emit an event without a date.
        raise AirflowSkipException(f"every day of {table} that is {event} was announced")
    outlet_events[own.asset].extra = due
    outlet_events[own.asset].add_partitions(sorted(due))
    return sorted(due)


def announce_complete_dates(lake: LakeRef, *, inlet_events: Any = None, outlet_events: Any = None) -> list[str]:
    """Emits one event for all dates that are complete in all tables and were not announced. Returns the dates."""
    asset = all_complete(lake)
    due = _due_dates(connect_started(lake).lake, asset, inlet_events)
    if not due:
        raise AirflowSkipException("every date that is complete in all tables was announced")
    outlet_events[asset].extra = {"dates": due}
    return due


def _due_dates(lake: Lake, asset: Asset, inlet_events: Any) -> list[str]:
    now = utc_now()
    return dates_unannounced(read_days(lake), inlet_events[asset].after((now - REMEMBERED).isoformat()), now)


def _due(lake: Lake, own: DayAsset, inlet_events: Any) -> dict[str, Extra]:
    now = utc_now()
    # An event is recorded after what it announces has happened.
    events = inlet_events[own.asset].after((now - REMEMBERED).isoformat())
    return unannounced(own, read_days(lake), last_announced(events), now)


def day_assets(lake: LakeRef) -> tuple[DayAsset, ...]:
    """All of ``lake``, in the order in which rows flow."""
    return tuple(DayAsset(lake, table, event) for table in _TABLES for event in DayEvent)


def all_complete(lake: LakeRef) -> Asset:
    """That dates are complete in all tables. Its events have no partition key, so plain schedules can wait for them."""
    return Asset(lake.named("adloom/days"))


def unannounced(own: DayAsset, days: Iterable[Day], announced: Mapping[str, Extra], now: datetime) -> dict[str, Extra]:
    """By date, what ``own`` has yet to announce: see :func:`last_announced`.

    Args:
        own: which table, and what of its days.
        days: rows of ``gold/days``.
        announced: by date, what was announced last.
        now: the wall clock.
    """
    found: dict[str, Extra] = {}
    for day in days:
        happened = day.complete_at if own.event is DayEvent.COMPLETE else day.restated_at
        key = day.event_date.isoformat()
        if day.table_name != own.table or happened is None or happened < now - REMEMBERED:
            continue
        if key not in announced or (
            own.event is DayEvent.RESTATED and announced[key].get("restated", 0) < day.restated
        ):
            found[key] = _extra(day, own.event)
    return found


def dates_unannounced(days: Iterable[Day], events: Iterable[Any], now: datetime) -> list[str]:
    """The dates that are complete in all tables, which no event of :func:`all_complete` has announced yet.

    All tables that have days in this lake: `measure` is optional, and a query may use processing time.

    Args:
        days: rows of ``gold/days``.
        events: the asset's events.
        now: the wall clock.
    """
    complete: dict[str, dict[str, datetime]] = {}
    tables = set()
    for day in days:
        tables.add(day.table_name)
        if day.complete_at is not None:
            complete.setdefault(day.event_date.isoformat(), {})[day.table_name] = day.complete_at
    announced = {date for event in events for date in (event.extra or {}).get("dates", ())}
    return sorted(
        date
        for date, at in complete.items()
        if at.keys() == tables and max(at.values()) >= now - REMEMBERED and date not in announced
    )


def _extra(day: Day, event: DayEvent) -> Extra:
    extra: Extra = {"table": day.table_name, "version": day.version}
    if event is DayEvent.RESTATED:
        names = ("restated", "changes", "impressions", "clicks", "cost_micros")
        extra |= {name: getattr(day, name) for name in names}
    return extra


def last_announced(events: Iterable[Any]) -> dict[str, Extra]:
    """The last announcement for each date, from Airflow's asset ``events`` (oldest first).

    A task gives all its events one ``extra``, so this has a part for each date.
    """
    return {
        event.partition_key: dict((event.extra or {}).get(event.partition_key) or {})
        for event in events
        if event.partition_key
    }
