"""Recomputes a past window of gold from bronze, beside the live tables, and reports which rows differ.

Trigger it with the two ends of the window. The live tables are only read. The task's log says how many rows are the
same, how many differ, and which ones. All of them are in the lake under `_backfills/<from>_<to>/`:

- `attributions`, `sessions`: the recomputed rows,
- `attributions_differences`, `sessions_differences`: for each row the kind of `difference`, the `columns` that differ,
  the `live` row and the `recomputed` one.

A batch computation has no late data, so rows differ because of lateness or because somebody changed them. Rows that the
live job has not reached yet are `open`.
"""

from airflow.sdk import task

from ad_dags.defaults import adloom_dag
from ad_dags.forms import time_field
from ad_dags.tasks.maintenance import backfill_window

with adloom_dag(
    "backfill_window",
    __doc__,
    tag="maintenance",
    retries=0,
    params={
        "from": time_field("From", "Start of the window, by event time (inclusive)."),
        "to": time_field("To", "End of the window, by event time (exclusive)."),
    },
):
    task(backfill_window)()
