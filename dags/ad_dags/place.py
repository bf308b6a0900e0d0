"""The lake, its settings and its launcher, read when a task runs.

They come from the environment of Airflow's processes, and before that from the connection that the lake's DAGs were
declared with or, failing that, the environment names.
"""

import logging
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from ad_dags.connection import ACCESS_KEY, CONNECTION, SECRET_KEY, variables_of_connection
from ad_dags.lakes import LakeRef
from ad_dags.launchers import Launcher
from ad_dags.launchers.cluster import Cluster, ClusterLauncher
from ad_dags.launchers.kubernetes import KubernetesCluster
from ad_dags.launchers.supervisor import SupervisorLauncher
from ad_dags.launchers.yarn import YarnCluster
from ad_dags.programs import environment_of_commands, run_program
from spark_jobs.contracts.errors import SettingsError
from spark_jobs.contracts.files import StoreKeys
from spark_jobs.contracts.settings import Settings, load_settings
from spark_jobs.lake.layout import Lake
from spark_jobs.queries import QUERIES_OF_JOB
from spark_jobs.runtime.lakes import open_lake

_LAKE, _CONFIG = "ADLOOM_LAKE", "ADLOOM_CONFIG"
_ADDRESS, _PASSWORD = "ADLOOM_SUPERVISOR_ADDRESS", "ADLOOM_SUPERVISOR_PASSWORD"
_CHECKOUT, _JOBS = "ADLOOM_CHECKOUT", "ADLOOM_JOBS"
_MASTER, _SOURCE, _PROPERTIES = "ADLOOM_CLUSTER", "ADLOOM_SOURCE", "ADLOOM_SUBMIT_PROPERTIES"
"""For drivers on a cluster: the cluster, the input if it is not Kafka, and further Spark properties."""
_YARN, _NAMESPACE, _ACCOUNT = "ADLOOM_YARN_ADDRESS", "ADLOOM_KUBERNETES_NAMESPACE", "ADLOOM_KUBERNETES_ACCOUNT"
_AFTER_STOP_TIMEOUT = timedelta(minutes=1)
_KNOWN_S = 60.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Place:
    """A lake, the settings of its jobs, and the launcher of their drivers."""

    location: str
    config: Path | None
    settings: Settings
    lake: Lake
    launcher: Launcher = field(repr=False)
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What the connection adds to the environment of commands."""
    connection: str = ""
    """The connection; empty: there is none."""

    @property
    def environment(self) -> dict[str, str]:
        """What settings are read from besides the file: this process's environment, and what the connection adds."""
        return {**os.environ, **self.variables}

    @property
    def stop_patience(self) -> timedelta:
        """How long a driver may take to stop before it is killed."""
        return _stop_patience(self.settings)


def find_place(lake: LakeRef, environment: Mapping[str, str] | None = None) -> Place:
    """The place that ``environment`` (by default that of this process) and the connection of ``lake`` describe.

    Raises:
        SettingsError: a variable is missing, or a setting or the connection is wrong.
    """
    given = os.environ if environment is None else environment
    connection = _connection(lake, given)
    of_connection = variables_of_connection(connection) if connection else {}
    variables = {**given, **of_connection}
    _require(variables, _LAKE, f"{_LAKE} is the lake")
    config = Path(variables[_CONFIG]) if variables.get(_CONFIG) else None
    settings = load_settings(config, variables)
    keys = StoreKeys(of_connection[ACCESS_KEY], of_connection[SECRET_KEY]) if ACCESS_KEY in of_connection else None
    opened = open_lake(variables[_LAKE], settings.s3, keys=keys)
    passed_on = environment_of_commands(of_connection)
    launcher = _launcher(variables, settings, opened, config, passed_on)
    return Place(variables[_LAKE], config, settings, opened, launcher, passed_on, connection)


class KnownPlace:
    """The place, for a process that asks for it again and again.

    If a connection describes it, it is found again after a minute, because keys and passwords may have changed. While
    it cannot be found again, the one before holds.
    """

    def __init__(self, find: Callable[[], Place], clock: Callable[[], float] = time.monotonic) -> None:
        """``clock`` counts seconds."""
        self._find, self._clock = find, clock
        self._place: Place | None = None
        self._found_at = 0.0

    def now(self) -> Place:
        """The place; blocks while it is looked for.

        Raises:
            SettingsError: see :func:`find_place`; only until it has been found once.
        """
        if self._place is not None and (not self._place.connection or self._clock() < self._found_at + _KNOWN_S):
            return self._place
        self._found_at = self._clock()
        try:
            self._place = self._find()
        except SettingsError as error:
            if self._place is None:
                raise
            _log.warning("the place as it was before is used: %s", error)
        return self._place


def _connection(lake: LakeRef, variables: Mapping[str, str]) -> str:
    return lake.connection or variables.get(CONNECTION, "")


def _launcher(
    variables: Mapping[str, str], settings: Settings, lake: Lake, config: Path | None, passed_on: Mapping[str, str]
) -> Launcher:
    master = variables.get(_MASTER, "")
    if not master:
        _require(variables, _ADDRESS, _PASSWORD, "they belong to the supervisord that runs the drivers")
        return SupervisorLauncher(variables[_ADDRESS], variables[_PASSWORD])
    options = {
        "--lake": variables[_LAKE],
        "--master": master,
        "--config": config and str(config),
        "--source": variables.get(_SOURCE),
        "--properties": variables.get(_PROPERTIES),
    }
    words = [f"{option}={value}" for option, value in options.items() if value]
    return ClusterLauncher(
        _cluster(variables, master, lake.root),
        lake,
        lambda job: run_program(["submit", job, *words], variables=passed_on),
        _stop_patience(settings),
    )


def _stop_patience(settings: Settings) -> timedelta:
    return settings.job.stop_timeout + _AFTER_STOP_TIMEOUT


def _cluster(variables: Mapping[str, str], master: str, root: str) -> Cluster:
    if master == "yarn":
        _require(variables, _YARN, "it is the ResourceManager, as in http://host:8088")
        return YarnCluster(variables[_YARN], root)
    if not master.startswith("k8s://"):
        raise SettingsError(
            f"{_MASTER} {master!r} is not a cluster that can run drivers; set yarn, k8s://https://host:port or nothing"
        )
    account = {"account": Path(variables[_ACCOUNT])} if variables.get(_ACCOUNT) else {}
    return KubernetesCluster(master.removeprefix("k8s://"), root, variables.get(_NAMESPACE) or "default", **account)


def _require(variables: Mapping[str, str], *names_and_why: str) -> None:
    *names, why = names_and_why
    if missing := [name for name in names if not variables.get(name)]:
        raise SettingsError(
            f"{', '.join(missing)} not set in the environment of Airflow's processes, nor by the connection that "
            f"{CONNECTION} names: {why}"
        )


def checkout() -> Path:
    """The checkout that releases are built from: ``ADLOOM_CHECKOUT``, or the one that contains the DAGs."""
    folder = os.environ.get(_CHECKOUT)
    return Path(folder) if folder else Path(__file__).resolve().parents[2]


def jobs_here(lake: LakeRef) -> list[str]:
    """The jobs of ``lake`` that are deployed together, in the order in which rows flow.

    They are those that ADLOOM_JOBS names, separated by commas; all if it is empty.

    Raises:
        SettingsError: it names a job that does not exist, or the connection is wrong.
    """
    connection = _connection(lake, os.environ)
    variables = {**os.environ, **(variables_of_connection(connection) if connection else {})}
    named = {name.strip() for name in variables.get(_JOBS, "").split(",") if name.strip()}
    if unknown := named - QUERIES_OF_JOB.keys():
        raise SettingsError(f"{_JOBS} names {min(unknown)!r}; there are {', '.join(QUERIES_OF_JOB)}")
    return [job for job in QUERIES_OF_JOB if job in named or not named]
