"""Computes a past window of gold anew from bronze, beside the live tables, and tells which rows differ.

Trigger it with the two ends of the window. The live tables are read and stay as they are. The log of the task tells how
many rows are the same, how many differ and which; all of them lie in the lake under `_backfills/<from>_<to>/`:

- `attributions`, `sessions`: the rows computed anew,
- `attributions_differences`, `sessions_differences`: row by row the `difference`, the `columns` that are other, the
  `live` row and the `recomputed` one.

In batch nothing is late: rows that differ are those that lateness has cost, or that somebody has changed. Rows that the
live job has not come to yet are `open`.
"""

from airflow.sdk import Param, task

from ad_dags.defaults import adloom_dag
from ad_dags.tasks.care import backfill_window

_TIME = r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}:\d{2})$"
"""Airflow checks a pattern, and takes any text for a date-time."""


def _time(title: str, description: str) -> Param:
    return Param(type="string", format="date-time", pattern=_TIME, title=title, description=description)


with adloom_dag(
    "backfill_window",
    __doc__,
    tag="care",
    retries=0,
    params={
        "from": _time("From", "Where the window begins: event times from here on."),
        "to": _time("To", "Where it ends: event times before this."),
    },
):
    task(backfill_window)()
