"""Validates what is new in the tables against the expectations, and publishes the report and a page of charts.

Runs every hour, and whenever the gold tables have new versions, at most every 15 minutes. A failed critical expectation
fails the run; a warning appears in the log and in the report. The report and its history are in the lake, under
`_reports/`; the page **Data quality** shows them.

If no critical expectation fails, it emits an event of the asset `adloom/gold/<table>` for each table with a newly
validated version. The version is in the `extra` of the event, so a DAG with such an asset as its schedule can read
exactly what was validated.
"""

from airflow.sdk import DAG, Asset, AssetOrTimeSchedule, AssetWatcher, CronTriggerTimetable, TriggerRule, task

from ad_dags.defaults import DagDefaults
from ad_dags.tasks.validation import draw_overview, validate_tables
from ad_dags.triggers.new_versions import NewVersionsTrigger
from ad_dags.validated import validated_gold


def declare(own: DagDefaults) -> DAG:
    """The DAG, for the lake of ``own``."""
    watcher = AssetWatcher(name="new_versions", trigger=NewVersionsTrigger(connection=own.lake.connection))
    gold = Asset(own.lake.named("adloom_gold"), watchers=[watcher])
    hourly = CronTriggerTimetable("15 * * * *", timezone="UTC")
    schedule = AssetOrTimeSchedule(timetable=hourly, assets=[gold])
    validated = [validated_gold(own.lake)]
    with own.dag("validate_tables", __doc__, tag="quality", schedule=schedule, retries=1) as dag:
        validating = task(pool=own.pool, trigger_rule=TriggerRule.ALL_DONE, inlets=validated, outlets=validated)
        # The run has the outcome of its last task: charts that cannot be rendered fail their task, but not the run.
        task(pool=own.pool)(draw_overview)(own.lake) >> validating(validate_tables)(own.lake)
    return dag
