"""Validates what is new in the tables against the expectations, and publishes the report and a page of charts.

Runs every hour, and whenever the gold tables have new versions, at most every 15 minutes. A failed critical expectation
fails the run; a warning appears in the log and in the report. The report and its history are in the lake, under
`_reports/`; the page **Data quality** shows them.
"""

from airflow.sdk import Asset, AssetOrTimeSchedule, AssetWatcher, CronTriggerTimetable, TriggerRule, task

from ad_dags.defaults import adloom_dag
from ad_dags.tasks.maintenance import draw_overview, validate_tables
from ad_dags.triggers.new_versions import NewVersionsTrigger

GOLD = Asset("adloom_gold", watchers=[AssetWatcher(name="new_versions", trigger=NewVersionsTrigger())])

with adloom_dag(
    "validate_tables",
    __doc__,
    tag="quality",
    schedule=AssetOrTimeSchedule(timetable=CronTriggerTimetable("15 * * * *", timezone="UTC"), assets=[GOLD]),
    retries=1,
):
    # The run has the outcome of its last task: charts that cannot be rendered fail their task, but not the run.
    task(draw_overview)() >> task(trigger_rule=TriggerRule.ALL_DONE)(validate_tables)()
