"""Telling OpenLineage what was committed and validated."""

from dataclasses import replace
from importlib import import_module
from typing import Any

from airflow.sdk.exceptions import AirflowSkipException

from ad_dags.lakes import LakeRef
from ad_dags.tasks.commands import run_adloom
from ad_dags.tasks.maintenance import place_of_started_lake
from spark_jobs.contracts.choices import LineageTransport
from spark_jobs.lineage.parent import PARENT_ID

_PROVIDER = "airflow.providers.openlineage"


def emit_lineage(lake: LakeRef, task_instance: Any = None) -> str:
    """Sends the events that were not sent yet, as a part of this task's run, if Airflow tells OpenLineage of that."""
    place = place_of_started_lake(lake)
    if place.settings.lineage.transport is LineageTransport.NONE:
        raise AirflowSkipException("lineage.transport is none, so nothing is sent; set it to file or http and deploy")
    own = replace(place, variables={**place.variables, **_parent(task_instance)})
    _, output = run_adloom(own, ["lineage"])
    return output


def _parent(task_instance: Any) -> dict[str, str]:
    """The variable that names the run of this task; empty if Airflow's provider is missing or sends nothing."""
    try:
        provider, macros = import_module(f"{_PROVIDER}.conf"), import_module(f"{_PROVIDER}.plugins.macros")
    except ImportError:
        return {}
    return {} if provider.is_disabled() else {PARENT_ID: macros.lineage_parent_id(task_instance)}
