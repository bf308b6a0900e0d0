"""Recomputes a past window of gold from bronze, reports how the live rows differ and why, and can put them in place.

Trigger it with the two ends of the window. The task's log has a table: how many rows of each table are the same, how
many differ because an event was late, are still open, or differ and nothing explains why. The report is in the lake
under `_reports/replays/`, as JSON and as a page. Jobs keep running.

The run fails if rows differ that nothing explains: somebody changed a table, or adloom has a bug. With **apply**, what
differs is put in place, late or not, and recorded in `gold/restatements`; rows that are open or older than
`repair.freeze_after` stay as they are.

A user who may trigger this DAG can change what gold contains: give that permission to those who may deploy.
"""

from airflow.sdk import DAG, Param
from airflow.sdk.exceptions import AirflowFailException

from ad_dags.commands import CommandError, run_adloom
from ad_dags.connection.lake_connection import LakeConnection, connect_started
from ad_dags.connection.lakes import LakeRef
from ad_dags.defaults import DagDefaults
from ad_dags.forms import Form, form_task, options, time_field
from spark_jobs.queries.registry import QUERIES

RECOMPUTED = tuple(query.writes.name for query in QUERIES if query.is_correctable)
"""The tables of gold that a replay knows."""
_UNEXPLAINED = "nothing explains why"
"""In what the command prints if rows differ, and it is not known why."""
_FAILED = 1


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
        form_task(replay_window, pool=own.pool)(own.lake)
    return dag


def replay_window(lake: LakeRef, params: Form) -> str:
    """Replays the window from ``params["from"]`` to ``params["to"]``; if ``apply``, puts in place what differs."""
    # Each is one word, as those of `options`; the command says what is wrong with an end that is missing.
    chosen = [f"--tables={','.join(params['tables'])}"] if params["tables"] else []
    return replay(
        connect_started(lake), [f"--from={params['from']}", f"--to={params['to']}", *chosen, *options(params, "apply")]
    )


def replay(connection: LakeConnection, window: list[str]) -> str:
    """Runs `adloom replay`; ``window`` are its options. Rows that differ and that nothing explains are an error."""
    code, output = run_adloom(connection, ["replay"], window, allowed=(0, _FAILED), changes_lake=True)
    if code == _FAILED:
        lines = [line.strip() for line in output.splitlines() if line.strip()]
        if unexplained := [line for line in lines if _UNEXPLAINED in line]:
            # A retry would find the same.
            raise AirflowFailException(unexplained[-1])
        raise CommandError(lines[-1] if lines else "adloom replay printed nothing")
    return output
