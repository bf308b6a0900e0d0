"""Validates what is new in the tables against the expectations, and publishes the report and a page of charts.

Runs every hour, and whenever the gold tables have new versions, at most every 15 minutes. A failed critical expectation
fails the run; a warning appears in the log and in the report. The report and its history are in the lake, under
`_reports/`; the page **Data quality** shows them.

If no critical expectation fails, it emits an event of the asset `adloom/gold/<table>` for each table with a newly
validated version. The version is in the `extra` of the event, so a DAG with such an asset as its schedule can read
exactly what was validated.
"""

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from airflow.sdk import (
    DAG,
    Asset,
    AssetAlias,
    AssetOrTimeSchedule,
    AssetWatcher,
    CronTriggerTimetable,
    TriggerRule,
    task,
)
from airflow.sdk.exceptions import AirflowFailException

from ad_dags.clock import utc_now
from ad_dags.commands import CommandError, run_adloom
from ad_dags.connection.lake_connection import LakeConnection, connect_started
from ad_dags.connection.lakes import LakeRef
from ad_dags.dags.close_days import REMEMBERED
from ad_dags.defaults import DagDefaults
from ad_dags.drivers.triggers.new_versions import NewVersionsTrigger, read_validated
from spark_jobs.queries.registry import VALIDATED_TABLES

_FAILED = 1
"""Exit code of a validation in which a critical expectation failed, and of one that could not run."""
_log = logging.getLogger(__name__)


def watched_gold(lake: LakeRef) -> Asset:
    """The asset that changes when the gold tables of ``lake`` have new versions.

    All DAGs that wait for it must declare it with its watcher: of several declarations of one asset Airflow keeps the
    watchers of any, another one after each parse, and so would start and cancel the watcher.
    """
    watcher = AssetWatcher(name="new_versions", trigger=NewVersionsTrigger(connection=lake.connection))
    return Asset(lake.named("adloom_gold"), watchers=[watcher])


def declare(own: DagDefaults) -> DAG:
    """The DAG, for the lake of ``own``."""
    hourly = CronTriggerTimetable("15 * * * *", timezone="UTC")
    schedule = AssetOrTimeSchedule(timetable=hourly, assets=[watched_gold(own.lake)])
    validated = [validated_gold(own.lake)]
    with own.dag("validate_tables", __doc__, tag="quality", schedule=schedule, retries=1) as dag:
        validating = task(pool=own.pool, trigger_rule=TriggerRule.ALL_DONE, inlets=validated, outlets=validated)
        # The run has the outcome of its last task: charts that cannot be rendered fail their task, but not the run.
        task(pool=own.pool)(draw_overview)(own.lake) >> validating(validate_tables)(own.lake)
    return dag


def validate_tables(lake: LakeRef, *, inlet_events: Any = None, outlet_events: Any = None) -> str:
    """Validates what is new in the tables. A warning is logged; a failed critical expectation is an error.

    If none fails, it emits an event for each table of gold with a validated version that was not announced yet.
    """
    connection = connect_started(lake)
    code, output = run_adloom(connection, ["validate"], ["--critical"], allowed=(0, _FAILED))
    if code == _FAILED:
        failed = "; ".join(line.strip() for line in output.splitlines() if line.strip().startswith("critical: "))
        if not failed:
            raise CommandError(output.splitlines()[-1] if output else "adloom validate printed nothing")
        # A retry would find the same.
        raise AirflowFailException(failed)
    _announce(lake, connection, inlet_events, outlet_events)
    return output


def draw_overview(lake: LakeRef) -> str:
    """Renders the page of charts about the tables."""
    _, output = run_adloom(connect_started(lake), ["report"])
    return output


def _announce(lake: LakeRef, connection: LakeConnection, inlet_events: Any, outlet_events: Any) -> None:
    alias, assets = validated_gold(lake), validated_assets(lake)
    # Without the bound, every event there ever was would be read each time.
    events = inlet_events[alias].after((utc_now() - REMEMBERED).isoformat())
    for table, version in unannounced(assets, read_validated(connection.lake), events).items():
        outlet_events[alias].add(assets[table], extra={"version": version})
        _log.info("%s: version %s was validated", table, version)


def validated_gold(lake: LakeRef) -> AssetAlias:
    """The alias through which versions of ``lake`` are announced.

    Without it, a successful task would emit an event for each of its outlets, even for those that did not change.
    """
    return AssetAlias(lake.named("adloom_validated_gold"))


def validated_assets(lake: LakeRef) -> dict[str, Asset]:
    """By table of gold, the asset that consumers have as their schedule."""
    gold = [table for table in VALIDATED_TABLES if table.path.startswith("gold/")]
    return {table.name: Asset(lake.named(f"adloom/{table.path}")) for table in gold}


def unannounced(assets: Mapping[str, Asset], validated: Mapping[str, int], events: Iterable[Any]) -> dict[str, int]:
    """By table of gold, the version that was validated and is not the one that was announced last.

    Args:
        assets: by table, as of :func:`validated_assets`.
        validated: by table, the last version that has passed.
        events: Airflow's events of the assets, oldest first.
    """
    announced = {event.asset.name: (event.extra or {}).get("version") for event in events}
    return {
        table: validated[table]
        for table, asset in assets.items()
        if table in validated and validated[table] != announced.get(asset.name)
    }
