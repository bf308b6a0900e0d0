"""Marks invalid traffic by the rules in use, in `silver/marks`; no event is changed or deleted.

Runs hourly. It holds the events that came since its last run against the rules, as far as the job `deduplicate` has
come, and brings up to date what late events change. Jobs keep running. The task's log has a table: by rule, how many
events were marked and revoked, and what they cost or are worth. The first run marks everything that there is.

The rules come with adloom until others are applied with `adloom marks apply`, which can also mark past events anew and
tell beforehand what that would change. A run that is killed has changed nothing or all; the next one goes on.
"""

from airflow.sdk import DAG, task

from ad_dags.defaults import DagDefaults
from ad_dags.tasks.maintenance import mark_invalid


def declare(own: DagDefaults) -> DAG:
    """The DAG, for the lake of ``own``."""
    with own.dag("mark_invalid", __doc__, tag="maintenance", schedule="30 * * * *") as dag:
        task(pool=own.pool)(mark_invalid)(own.lake)
    return dag
