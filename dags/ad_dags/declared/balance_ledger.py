"""Keeps the live ledger: where every record went, up to versions of the tables that belong together.

Runs every 10 minutes. It reads what was added to the tables since the last time, without Spark, and takes a cut: how
many records were received, quarantined, kept, are duplicates or late, and how many events are pending in each query.
The page Data quality, `adloom ledger` and Prometheus show the last cut; the task's log has it too. Jobs keep running.

The task fails if the account does not balance to the row: a row is lost, or is there twice.
"""

from airflow.sdk import DAG, task

from ad_dags.defaults import DagDefaults
from ad_dags.tasks.maintenance import balance_ledger


def declare(own: DagDefaults) -> DAG:
    """The DAG, for the lake of ``own``."""
    with own.dag("balance_ledger", __doc__, tag="maintenance", schedule="*/10 * * * *") as dag:
        task(balance_ledger)(own.lake)
    return dag
