"""Validates what is new in the tables against the expectations, and publishes the report and a page of charts.

Runs every hour, and whenever the gold tables have new versions, at most every 15 minutes. A failed critical expectation
fails the run; a warning appears in the log and in the report. The report and its history are in the lake, under
`_reports/`; the page **Data quality** shows them.

If no critical expectation fails, it emits an event of the asset `adloom/gold/<table>` for each table with a newly
validated version. The version is in the `extra` of the event, so a DAG with such an asset as its schedule can read
exactly what was validated.
"""

from airflow.sdk import Asset, AssetOrTimeSchedule, AssetWatcher, CronTriggerTimetable, TriggerRule, task

from ad_dags.defaults import adloom_dag, spark_pool
from ad_dags.tasks.validation import draw_overview, validate_tables
from ad_dags.triggers.new_versions import NewVersionsTrigger
from ad_dags.validated import VALIDATED_GOLD

GOLD = Asset("adloom_gold", watchers=[AssetWatcher(name="new_versions", trigger=NewVersionsTrigger())])

with adloom_dag(
    "validate_tables",
    __doc__,
    tag="quality",
    schedule=AssetOrTimeSchedule(timetable=CronTriggerTimetable("15 * * * *", timezone="UTC"), assets=[GOLD]),
    retries=1,
):
    validating = task(
        pool=spark_pool(), trigger_rule=TriggerRule.ALL_DONE, inlets=[VALIDATED_GOLD], outlets=[VALIDATED_GOLD]
    )
    # The run has the outcome of its last task: charts that cannot be rendered fail their task, but not the run.
    task(pool=spark_pool())(draw_overview)() >> validating(validate_tables)()
