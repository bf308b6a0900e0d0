"""All DAGs of a lake, for a DAG file of any Airflow."""

from collections.abc import Collection, Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from airflow.sdk import DAG

from ad_dags import dags
from ad_dags.connection.lakes import LakeRef
from ad_dags.defaults import DagDefaults
from ad_dags.drivers.supervision import supervising_dag_id
from ad_dags.drivers.supervision.dag import supervising_dag
from spark_jobs.errors import SettingsError
from spark_jobs.queries.jobs import JOBS

_DECLARED = tuple(module.name for module in iter_modules(dags.__path__))
DAG_NAMES = tuple(sorted([*_DECLARED, *(supervising_dag_id(job.name) for job in JOBS)]))
"""Without prefix."""


def adloom_dags(
    lake: str = "",
    prefix: str = "",
    *,
    without: Collection[str] = (),
    schedules: Mapping[str, Any] | None = None,
    **common: Any,
) -> dict[str, DAG]:
    """The DAGs of one lake.

    A DAG file hands them to Airflow::

        from ad_dags.factory import adloom_dags

        globals().update(adloom_dags(lake="adloom_eu", prefix="eu_", pool="small", without={"replay_audit"}))

    The pages Streams and Data quality show the lakes that the variable ``ADLOOM_LAKES`` of the API server names
    (:func:`ad_dags.connection.lakes.lakes_here`).

    Args:
        lake: the Airflow connection, of type ``adloom``, that describes the lake; empty: the one that
            ``ADLOOM_CONNECTION`` names, or the environment.
        prefix: stands before the ids of the DAGs and the names of their assets, so that several lakes fit into one
            Airflow.
        without: names of DAGs, without prefix, to leave out.
        schedules: by name of a DAG, without prefix, its schedule, if not the usual one; None: only when triggered.
        common: ``owner``, ``tags``, ``pool``, ``on_failure`` (a callback or notifier, or a list of them) and ``limits``
            (of :class:`ad_dags.drivers.supervision.rules.Limits`) of :class:`ad_dags.defaults.DagDefaults`.

    Returns:
        The DAGs by id.

    Raises:
        SettingsError: the prefix is wrong, or there is no DAG of a name that is given.
    """
    schedules = schedules or {}
    if unknown := sorted({*without, *schedules} - {*DAG_NAMES}):
        raise SettingsError(f"adloom_dags: there is no DAG {unknown[0]!r}; there are {', '.join(DAG_NAMES)}")
    own = DagDefaults(LakeRef(lake, prefix), schedules=schedules, **common)
    found = [import_module(f"{dags.__name__}.{name}").declare(own) for name in _DECLARED if name not in without]
    found += [supervising_dag(own, job) for job in JOBS if supervising_dag_id(job.name) not in without]
    return {dag.dag_id: dag for dag in found}
