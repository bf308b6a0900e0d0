"""Keeps the ledger: where every record went, up to versions of the tables that belong together.

Runs every 10 minutes. It reads what was added to the tables since the last time, without Spark, and counts how many
records were received, quarantined, kept, are duplicates or late, and how many events are pending in each query.
The page Data quality, `adloom ledger`, Prometheus and the task's log show it. Jobs keep running.

The task fails if the account does not balance to the row: a row is lost, or is there twice.
"""

from airflow.sdk import DAG, task
from airflow.sdk.exceptions import AirflowFailException

from ad_dags.commands import CommandError, run_adloom
from ad_dags.connection.lake_connection import connect_started
from ad_dags.connection.lakes import LakeRef
from ad_dags.defaults import DagDefaults

_FAILED = 1
"""Exit code of a ledger that does not balance, and of one that could not be made."""
_OFF_BALANCE = "DOES NOT BALANCE"
"""How `adloom ledger` begins if a row is not accounted for."""


def declare(own: DagDefaults) -> DAG:
    """The DAG, for the lake of ``own``."""
    with own.dag("balance_ledger", __doc__, tag="maintenance", schedule="*/10 * * * *") as dag:
        task(balance_ledger)(own.lake)
    return dag


def balance_ledger(lake: LakeRef) -> str:
    """Brings the ledger up to now. That it does not balance is an error."""
    code, output = run_adloom(connect_started(lake), ["ledger"], allowed=(0, _FAILED))
    if code == _FAILED:
        lines = [line.strip() for line in output.splitlines()]
        wrong = next((line for line in lines if line.startswith(_OFF_BALANCE)), None)
        if wrong is None:
            raise CommandError(lines[-1] if lines else "adloom ledger printed nothing")
        # A retry would find the same.
        raise AirflowFailException(wrong)
    return output
