"""Recomputes a past window of gold from bronze, reports how the live rows differ and why, and can put them in place.

Trigger it with the two ends of the window. The task's log has a table: how many rows of each table are the same, how
many differ because an event was late, are still open, or differ and nothing explains why. The report is in the lake
under `_reports/replays/`, as JSON and as a page. Jobs keep running.

The run fails if rows differ that nothing explains: somebody changed a table, or adloom has a bug. With **apply**, what
differs is put in place, late or not, and told in `gold/restatements`; rows that are open or older than
`repair.freeze_after` stay as they are.

A user who may trigger this DAG can change what gold contains: give that permission to those who may deploy.
"""

from airflow.sdk import DAG, Param, task

from ad_dags.defaults import DagDefaults
from ad_dags.forms import time_field
from ad_dags.tasks.replay import RECOMPUTED, replay_window


def declare(own: DagDefaults) -> DAG:
    """The DAG, for the lake of ``own``."""
    with own.dag(
        "replay_window",
        __doc__,
        tag="maintenance",
        retries=0,
        params={
            "from": time_field("From", "Start of the window, by event time (inclusive)."),
            "to": time_field("To", "End of the window, by event time (exclusive)."),
            "tables": Param(
                [],
                type="array",
                title="Tables",
                description="Only these tables of gold. None: all.",
                items={"type": "string", "enum": list(RECOMPUTED)},
                examples=list(RECOMPUTED),
            ),
            "apply": Param(False, type="boolean", title="Apply", description="Put in place what differs."),
        },
    ) as dag:
        task(pool=own.pool)(replay_window)(own.lake)
    return dag
