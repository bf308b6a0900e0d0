"""Bringing ``gold/days`` up to date, and telling other DAGs of days that are complete or restated.

What was told is asked of Airflow itself. It records the events of a task together with the task's success, so a task
that fails, is killed or is cleared tells nothing twice and leaves nothing out.
"""

from typing import Any

from airflow.sdk import Asset
from airflow.sdk.exceptions import AirflowSkipException

from ad_dags.clock import utc_now
from ad_dags.connection.lakes import LakeRef
from ad_dags.days import (
    REMEMBERED,
    DayAsset,
    DayEvent,
    Extra,
    all_complete,
    dates_not_told,
    day_assets,
    not_told,
    what_was_told,
)
from ad_dags.commands import run_adloom
from ad_dags.connection.lake_connection import connect_started
from spark_jobs.lake.days import read_days
from spark_jobs.lake.layout import Lake


def update_days(lake: LakeRef, *, inlet_events: Any = None) -> list[str]:
    """Brings ``gold/days`` up to date. Returns the tasks that have something to tell."""
    connection = connect_started(lake)
    run_adloom(connection, ["days"], changes_lake=True)
    due = [own.task_id for own in day_assets(lake) if _due(connection.lake, own, inlet_events)]
    is_date_due = _due_dates(connection.lake, all_complete(lake), inlet_events)
    return [*due, tell_of_complete_dates.__name__] if is_date_due else due


def tell(lake: LakeRef, table: str, event: str, *, inlet_events: Any = None, outlet_events: Any = None) -> list[str]:
    """Emits an event for each date of ``table`` that has not been told of. Returns the dates."""
    own = DayAsset(lake, table, DayEvent(event))
    due = _due(connect_started(lake).lake, own, inlet_events)
    if not due:
        # Airflow would emit an event without a date.
        raise AirflowSkipException(f"every day of {table} that is {event} has been told of")
    outlet_events[own.asset].extra = due
    outlet_events[own.asset].add_partitions(sorted(due))
    return sorted(due)


def tell_of_complete_dates(lake: LakeRef, *, inlet_events: Any = None, outlet_events: Any = None) -> list[str]:
    """Emits one event for all dates that are complete in all tables and were not told of. Returns the dates."""
    asset = all_complete(lake)
    due = _due_dates(connect_started(lake).lake, asset, inlet_events)
    if not due:
        raise AirflowSkipException("every date that is complete in all tables has been told of")
    outlet_events[asset].extra = {"dates": due}
    return due


def _due_dates(lake: Lake, asset: Asset, inlet_events: Any) -> list[str]:
    now = utc_now()
    return dates_not_told(read_days(lake), inlet_events[asset].after((now - REMEMBERED).isoformat()), now)


def _due(lake: Lake, own: DayAsset, inlet_events: Any) -> dict[str, Extra]:
    now = utc_now()
    # An event is recorded after what it tells of has happened.
    events = inlet_events[own.asset].after((now - REMEMBERED).isoformat())
    return not_told(own, read_days(lake), what_was_told(events), now)
