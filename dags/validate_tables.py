"""Checks what is new in the tables against the expectations, and publishes the report and a page of charts.

Every hour, and when the gold tables have new versions, but then a quarter of an hour apart. A critical expectation that
fails fails the run; a warning is told in the log and in the report. The report and its history lie in the lake under
`_reports/`; the page **Data quality** shows them.
"""

from airflow.sdk import Asset, AssetOrTimeSchedule, AssetWatcher, CronTriggerTimetable, TriggerRule, task

from ad_dags.defaults import adloom_dag
from ad_dags.tasks.care import draw_overview, validate_tables
from ad_dags.triggers.new_versions import NewVersionsTrigger

GOLD = Asset("adloom_gold", watchers=[AssetWatcher(name="new_versions", trigger=NewVersionsTrigger())])

with adloom_dag(
    "validate_tables",
    __doc__,
    tag="quality",
    schedule=AssetOrTimeSchedule(timetable=CronTriggerTimetable("15 * * * *", timezone="UTC"), assets=[GOLD]),
    retries=1,
):
    # The run ends as its last task does: a page that could not be drawn is told of, and fails no run.
    task(draw_overview)() >> task(trigger_rule=TriggerRule.ALL_DONE)(validate_tables)()
