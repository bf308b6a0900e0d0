"""Where the jobs and their lake are: from the environment of Airflow's processes, when a task runs."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from ad_dags.launchers import Launcher
from ad_dags.launchers.cluster import Cluster, ClusterLauncher
from ad_dags.launchers.kubernetes import KubernetesCluster
from ad_dags.launchers.supervisor import SupervisorLauncher
from ad_dags.launchers.yarn import YarnCluster
from ad_dags.programs import run_program
from spark_jobs.contracts.errors import SettingsError
from spark_jobs.contracts.lake import Lake
from spark_jobs.contracts.settings import Settings, load_settings
from spark_jobs.queries import QUERIES_OF_JOB
from spark_jobs.runtime.lakes import open_lake

_LAKE, _CONFIG = "ADLOOM_LAKE", "ADLOOM_CONFIG"
_ADDRESS, _PASSWORD = "ADLOOM_SUPERVISOR_ADDRESS", "ADLOOM_SUPERVISOR_PASSWORD"
_CHECKOUT, _JOBS = "ADLOOM_CHECKOUT", "ADLOOM_JOBS"
_MASTER, _SOURCE, _PROPERTIES = "ADLOOM_CLUSTER", "ADLOOM_SOURCE", "ADLOOM_SUBMIT_PROPERTIES"
"""Of drivers on a cluster: where, what they read if not Kafka, and more Spark properties."""
_YARN, _NAMESPACE, _ACCOUNT = "ADLOOM_YARN_ADDRESS", "ADLOOM_KUBERNETES_NAMESPACE", "ADLOOM_KUBERNETES_ACCOUNT"
_AFTER_STOP_TIMEOUT = timedelta(minutes=1)


@dataclass(frozen=True)
class Place:
    """A lake, the settings of its jobs, and what starts their drivers."""

    location: str
    config: Path | None
    settings: Settings
    lake: Lake
    launcher: Launcher = field(repr=False)

    @property
    def stop_patience(self) -> timedelta:
        """How long a driver may take to stop."""
        return _stop_patience(self.settings)


def find_place(environment: Mapping[str, str] | None = None) -> Place:
    """The place that ``environment`` (by default the process's own) names.

    Raises:
        SettingsError: a variable is missing, or a setting is wrong.
    """
    told = os.environ if environment is None else environment
    _require(told, _LAKE, f"{_LAKE} is the lake")
    config = Path(told[_CONFIG]) if told.get(_CONFIG) else None
    settings = load_settings(config, told)
    lake = open_lake(told[_LAKE], settings.s3)
    return Place(told[_LAKE], config, settings, lake, _launcher(told, settings, lake, config))


def _launcher(told: Mapping[str, str], settings: Settings, lake: Lake, config: Path | None) -> Launcher:
    master = told.get(_MASTER, "")
    if not master:
        _require(told, _ADDRESS, _PASSWORD, "they are those of the supervisord that runs the drivers")
        return SupervisorLauncher(told[_ADDRESS], told[_PASSWORD])
    options = {
        "--lake": told[_LAKE],
        "--master": master,
        "--config": config and str(config),
        "--source": told.get(_SOURCE),
        "--properties": told.get(_PROPERTIES),
    }
    words = [f"{option}={value}" for option, value in options.items() if value]
    return ClusterLauncher(
        _cluster(told, master, lake.root),
        lake,
        lambda job: run_program(["submit", job, *words]),
        _stop_patience(settings),
    )


def _stop_patience(settings: Settings) -> timedelta:
    return settings.job.stop_timeout + _AFTER_STOP_TIMEOUT


def _cluster(told: Mapping[str, str], master: str, root: str) -> Cluster:
    if master == "yarn":
        _require(told, _YARN, "it is the ResourceManager, as in http://host:8088")
        return YarnCluster(told[_YARN], root)
    if not master.startswith("k8s://"):
        raise SettingsError(
            f"{_MASTER} {master!r} is no cluster that runs drivers; set yarn, k8s://https://host:port or none"
        )
    account = {"account": Path(told[_ACCOUNT])} if told.get(_ACCOUNT) else {}
    return KubernetesCluster(master.removeprefix("k8s://"), root, told.get(_NAMESPACE) or "default", **account)


def _require(told: Mapping[str, str], *names_and_why: str) -> None:
    *names, why = names_and_why
    if missing := [name for name in names if not told.get(name)]:
        raise SettingsError(f"{', '.join(missing)} not set in the environment of Airflow's processes: {why}")


def checkout() -> Path:
    """The checkout that releases are built from: ``ADLOOM_CHECKOUT``, or the one that the DAGs lie in."""
    told = os.environ.get(_CHECKOUT)
    return Path(told) if told else Path(__file__).resolve().parents[2]


def jobs_here() -> list[str]:
    """The jobs that are deployed together: those that ADLOOM_JOBS names, separated by commas, or all; as rows flow.

    Raises:
        SettingsError: there is no such job.
    """
    told = os.environ.get(_JOBS, "")
    named = {name.strip() for name in told.split(",") if name.strip()}
    if unknown := named - QUERIES_OF_JOB.keys():
        raise SettingsError(f"{_JOBS} names {min(unknown)!r}; there are {', '.join(QUERIES_OF_JOB)}")
    return [job for job in QUERIES_OF_JOB if job in named or not named]
