"""Marks invalid traffic by the rules in use, in `silver/marks`, and says in gold what is valid; nothing is deleted.

Runs hourly. It holds the events that came since its last run against the rules, as far as the job `deduplicate` has
come, and brings up to date what late events change. Jobs keep running. The task's log has a table: by rule, how many
events were marked and revoked, and what they cost or are worth. The first run marks everything that there is.

Then gold follows: what is valid, beside what is counted gross, with each changed row in `gold/restatements`. What can
still change by itself waits for the next run.

The rules come with adloom until others are applied with `adloom marks apply`, which can also mark past events anew and
tell beforehand what that would change. The next run goes on with one that was killed.
"""

from airflow.sdk import DAG, task

from ad_dags.commands import run_adloom
from ad_dags.connection.lake_connection import connect_started
from ad_dags.connection.lakes import LakeRef
from ad_dags.defaults import DagDefaults


def declare(own: DagDefaults) -> DAG:
    """The DAG, for the lake of ``own``."""
    with own.dag("mark_invalid", __doc__, tag="maintenance", schedule="30 * * * *") as dag:
        task(pool=own.pool)(mark_invalid)(own.lake)
    return dag


def mark_invalid(lake: LakeRef) -> str:
    """Marks invalid traffic by the rules in use, as far as events are known."""
    _, output = run_adloom(connect_started(lake), ["marks", "update"], changes_lake=True)
    return output
