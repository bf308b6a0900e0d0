"""Compacts small files of the tables, and vacuums files that no reader still needs.

Runs daily, while all jobs run: no row changes, and no job waits.
"""

from airflow.sdk import DAG, task

from ad_dags.commands import run_adloom
from ad_dags.connection.lake_connection import connect_started
from ad_dags.connection.lakes import LakeRef
from ad_dags.defaults import DagDefaults


def declare(own: DagDefaults) -> DAG:
    """The DAG, for the lake of ``own``."""
    with own.dag("maintain_tables", __doc__, tag="maintenance", schedule="0 4 * * *") as dag:
        task(pool=own.pool)(maintain_tables)(own.lake)
    return dag


def maintain_tables(lake: LakeRef) -> str:
    """Compacts and vacuums the tables while all jobs run."""
    _, output = run_adloom(connect_started(lake), ["maintain"], changes_lake=True)
    return output
