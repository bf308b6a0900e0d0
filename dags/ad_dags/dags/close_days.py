"""Finds out which days are done, and starts the DAGs that wait for them.

Every ten minutes it brings `gold/days` up to date, the table that says for each table of gold and each date whether the
day is open, complete, audited, restated or frozen; Spark starts only if something has changed. The log has it as a grid
of tables and dates. Then it tells of each day that became complete, and of each complete day that a repair or a replay
has restated, by the assets

- `adloom_<table>_day_complete`, once for each date;
- `adloom_<table>_day_restated`, once for each time that the date was restated (if it was restated twice between two
  runs, once for both).

The partition key of an event is the date, as in `2026-03-01`. A DAG with the schedule `PartitionedAssetTimetable` on
such an asset runs once for each date; on two of them, once for each date of which both have told.

The asset `adloom/days` is for DAGs with a plain schedule: one event, without a partition key, for all dates that are
complete in all tables since the event before. Its `extra` has them as `dates`.

What was told is asked of Airflow's own record of events, so nothing is told twice and a run that fails leaves nothing
out. Keep the asset events of 30 days when you clean Airflow's database. What happened longer ago is not told any more.
"""

from airflow.sdk import DAG, task

from ad_dags.days import all_complete, day_assets
from ad_dags.defaults import DagDefaults
from ad_dags.tasks.days import tell, tell_of_complete_dates, update_days


def declare(own: DagDefaults) -> DAG:
    """The DAG, for the lake of ``own``."""
    with own.dag("close_days", __doc__, tag="quality", schedule="*/10 * * * *") as dag:
        complete, days = all_complete(own.lake), day_assets(own.lake)
        inlets = [complete, *(day.asset for day in days)]
        updated = task.branch(inlets=inlets, pool=own.pool)(update_days)(own.lake)
        for day in days:
            telling = task(task_id=day.task_id, inlets=[day.asset], outlets=[day.asset])(tell)
            updated >> telling(own.lake, day.table, day.event.value)
        updated >> task(inlets=[complete], outlets=[complete])(tell_of_complete_dates)(own.lake)
    return dag
