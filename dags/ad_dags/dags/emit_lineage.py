"""Reports to OpenLineage what was committed to the tables and what validations found.

Runs every 10 minutes, and is skipped unless `lineage.transport` in the settings says where to send events. Each version
of a table and each validation is reported once; a run that fails or is killed leaves nothing out. The task's log has a
line for each event. If OpenLineage's provider is installed in Airflow and has a transport, each event names the task
that sent it as its parent.

The first run reports everything that the tables' logs still have. To begin with what comes next instead, run
`adloom lineage --from-now` once.
"""

from dataclasses import replace
from importlib import import_module
from typing import Any

from airflow.sdk import DAG, task
from airflow.sdk.exceptions import AirflowSkipException

from ad_dags.commands import run_adloom
from ad_dags.connection.lake_connection import connect_started
from ad_dags.connection.lakes import LakeRef
from ad_dags.defaults import DagDefaults
from spark_jobs.config.choices import LineageTransport
from spark_jobs.lineage.parent import PARENT_ID

_PROVIDER = "airflow.providers.openlineage"


def declare(own: DagDefaults) -> DAG:
    """The DAG, for the lake of ``own``."""
    with own.dag("emit_lineage", __doc__, tag="maintenance", schedule="*/10 * * * *") as dag:
        task(emit_lineage)(own.lake)
    return dag


def emit_lineage(lake: LakeRef, task_instance: Any = None) -> str:
    """Sends the events that were not sent yet, as a part of this task's run, if Airflow reports that to OpenLineage."""
    connection = connect_started(lake)
    if connection.settings.lineage.transport is LineageTransport.NONE:
        raise AirflowSkipException("lineage.transport is none, so nothing is sent; set it to file or http and deploy")
    own = replace(connection, variables={**connection.variables, **_parent(task_instance)})
    _, output = run_adloom(own, ["lineage"])
    return output


def _parent(task_instance: Any) -> dict[str, str]:
    """The variable that names the run of this task; empty if Airflow's provider is missing or sends nothing."""
    try:
        provider, macros = import_module(f"{_PROVIDER}.conf"), import_module(f"{_PROVIDER}.plugins.macros")
    except ImportError:
        return {}
    return {} if provider.is_disabled() else {PARENT_ID: macros.lineage_parent_id(task_instance)}
