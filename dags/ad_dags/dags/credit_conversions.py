"""Finds which impressions and clicks led to each conversion, and shares its value among them.

Runs whenever the gold tables have new versions, at most every 15 minutes, and each hour after `repair_late`. It
computes the conversions that have become due, because all their touches must have arrived by now, except late ones, and
those that late events have changed. Spark starts only if there are any. The task's log has how many, and how many rows
of `gold/paths`, `gold/credits` and `gold/left_out` they changed. Changes of rows that had been written before are in
`gold/restatements`. If events are marked as invalid traffic, `gold/net_paths` and `gold/net_credits` are brought up to
date with these marks.

Jobs keep running. The next run resumes one that was killed. To apply other settings to conversions that already have
their credit, give a window in the form: they are computed again. With **dry run** it only lists what it would write.
"""

from airflow.sdk import DAG, AssetOrTimeSchedule, CronTriggerTimetable, Param

from ad_dags.commands import run_adloom
from ad_dags.connection.lake_connection import connect_started
from ad_dags.connection.lakes import LakeRef
from ad_dags.dags.validate_tables import watched_gold
from ad_dags.defaults import DagDefaults
from ad_dags.forms import Form, form_task, options, time_field


def declare(own: DagDefaults) -> DAG:
    """The DAG, for the lake of ``own``."""
    hourly = CronTriggerTimetable("40 * * * *", timezone="UTC")
    schedule = AssetOrTimeSchedule(timetable=hourly, assets=[watched_gold(own.lake)])
    with own.dag(
        "credit_conversions",
        __doc__,
        tag="maintenance",
        schedule=schedule,
        params={
            "from": time_field("From", "Compute conversions from this time on again.", is_optional=True),
            "to": time_field("To", "End of that window, exclusive.", is_optional=True),
            "dry_run": Param(False, type="boolean", title="Dry run", description="Only list what would be written."),
        },
    ) as dag:
        form_task(credit_conversions, pool=own.pool)(own.lake)
    return dag


def credit_conversions(lake: LakeRef, params: Form) -> str:
    """Brings the credits of conversions up to date; those of the window in ``params``, if there is one, again."""
    chosen = options(params, "from", "to", "dry_run")
    _, output = run_adloom(connect_started(lake), ["credit"], chosen, changes_lake=True)
    return output
