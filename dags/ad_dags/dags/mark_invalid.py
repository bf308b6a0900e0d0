"""Marks invalid traffic by the rules in use, in `silver/marks`, and says in gold what is valid; nothing is deleted.

Runs hourly. It applies the rules to the events that arrived since its last run, up to the watermark of the job
`deduplicate`, and brings up to date what late events change. Jobs keep running. The task's log has a table: by rule,
how many events were marked and revoked, and what they cost or are worth. The first run covers all events.

Then gold follows: what is valid, next to the gross counts, with each changed row in `gold/restatements`. Rows that the
live queries may still change wait for the next run.

adloom's default rules apply until others are put in use with `adloom marks apply`, which can also mark past events
again, and show beforehand what that would change. The next run resumes one that was killed.
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
    """Marks invalid traffic by the rules in use, up to where silver is complete."""
    _, output = run_adloom(connect_started(lake), ["marks", "update"], changes_lake=True)
    return output
