"""The lake, its settings and its launcher, read when a task runs.

They come from the environment of Airflow's processes, and before that from the connection that the lake's DAGs were
declared with or, failing that, the environment names.
"""

import logging
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

from airflow.sdk.exceptions import AirflowSkipException

from ad_dags.commands import environment_of_commands, run_program
from ad_dags.connection.airflow_connection import (
    ACCESS_KEY,
    CONNECTION,
    SECRET_KEY,
    SESSION_TOKEN,
    variables_of_connection,
)
from ad_dags.connection.lakes import LakeRef
from ad_dags.drivers.launchers import Launcher
from ad_dags.drivers.launchers.cluster import Cluster, ClusterLauncher
from ad_dags.drivers.launchers.kubernetes import KubernetesCluster
from ad_dags.drivers.launchers.supervisor import SupervisorLauncher
from ad_dags.drivers.launchers.yarn import YarnCluster
from spark_jobs.config.secret_files import value_of
from spark_jobs.config.settings import Settings, load_settings
from spark_jobs.errors import SettingsError
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from spark_jobs.lake.store.files import StoreKeys
from spark_jobs.operations.releases import settings_in_use
from spark_jobs.places import CHECKPOINTS
from spark_jobs.queries.registry import QUERIES_OF_JOB

_LAKE, _CONFIG = "ADLOOM_LAKE", "ADLOOM_CONFIG"
_ADDRESS, _PASSWORD = "ADLOOM_SUPERVISOR_ADDRESS", "ADLOOM_SUPERVISOR_PASSWORD"
_CHECKOUT, _JOBS = "ADLOOM_CHECKOUT", "ADLOOM_JOBS"
_MASTER, _SOURCE, _PROPERTIES = "ADLOOM_CLUSTER", "ADLOOM_SOURCE", "ADLOOM_SUBMIT_PROPERTIES"
"""For drivers on a cluster: the cluster, the input if it is not Kafka, and further Spark properties."""
_YARN, _NAMESPACE, _ACCOUNT = "ADLOOM_YARN_ADDRESS", "ADLOOM_KUBERNETES_NAMESPACE", "ADLOOM_KUBERNETES_ACCOUNT"
_KEYS = (ACCESS_KEY, SECRET_KEY, SESSION_TOKEN)
_AFTER_STOP_TIMEOUT = timedelta(minutes=1)
_KNOWN_S = 60.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class LakeConnection:
    """A lake, the settings of its jobs, and the launcher of their drivers."""

    location: str
    config: Path | None
    settings: Settings
    lake: Lake
    launcher: Launcher = field(repr=False)
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The environment variables that the connection adds for commands."""
    name: str = ""
    """The Airflow connection; empty: only the environment describes the lake."""

    @property
    def environment(self) -> dict[str, str]:
        """The environment that settings are read from: this process's, with what the connection adds."""
        return {**os.environ, **self.variables}

    @property
    def stop_patience(self) -> timedelta:
        """How long a driver may take to stop before it is killed."""
        return _stop_patience(self.settings)


def connect(lake: LakeRef, environment: Mapping[str, str] | None = None) -> LakeConnection:
    """The lake that ``environment`` (by default this process's) and the Airflow connection of ``lake`` describe.

    Raises:
        SettingsError: a variable is missing, or a setting or the connection is wrong.
    """
    given = os.environ if environment is None else environment
    name = _name(lake, given)
    of_connection = variables_of_connection(name) if name else {}
    variables = {**given, **of_connection}
    _require(variables, _LAKE, f"{_LAKE} is the lake")
    config = Path(variables[_CONFIG]) if variables.get(_CONFIG) else None
    settings = load_settings(config, variables)
    keys = StoreKeys(*(of_connection[one] for one in _KEYS)) if ACCESS_KEY in of_connection else None
    opened = open_lake(variables[_LAKE], settings.s3, keys=keys)
    passed_on = environment_of_commands(of_connection)
    launcher = _launcher(variables, settings, opened, config, passed_on)
    return LakeConnection(variables[_LAKE], config, settings, opened, launcher, passed_on, name)


class KnownConnection:
    """The connection of a lake, for a process that needs it again and again.

    It is read again after a minute, because keys and passwords may have changed: in Airflow, or in the files that
    variables name. While it cannot be read, the last one is used.
    """

    def __init__(self, connect: Callable[[], LakeConnection], clock: Callable[[], float] = time.monotonic) -> None:
        """``clock`` counts seconds."""
        self._connect, self._clock = connect, clock
        self._last: LakeConnection | None = None
        self._read_at = 0.0

    def now(self) -> LakeConnection:
        """The connection; blocks while it is read.

        Raises:
            SettingsError: see :func:`connect`; only until it has been read once.
        """
        if self._last is not None and self._clock() < self._read_at + _KNOWN_S:
            return self._last
        self._read_at = self._clock()
        try:
            self._last = self._connect()
        except SettingsError as error:
            if self._last is None:
                raise
            _log.warning("the connection cannot be read, the last one is used: %s", error)
        return self._last


def connect_started(lake: LakeRef) -> LakeConnection:
    """As :func:`connect`, with the settings of the release that was deployed last: a task uses those of the drivers.

    Raises:
        AirflowSkipException: no job has run on the lake yet.
        SettingsError: see :func:`connect`.
    """
    connection = connect(lake)
    if not connection.lake.files.names(CHECKPOINTS):
        raise AirflowSkipException(f"no job has run on {connection.lake.root} yet")
    if config := settings_in_use(connection.lake):
        return replace(connection, config=config, settings=load_settings(config, connection.environment))
    return connection


def _name(lake: LakeRef, variables: Mapping[str, str]) -> str:
    return lake.connection or variables.get(CONNECTION, "")


def _launcher(
    variables: Mapping[str, str], settings: Settings, lake: Lake, config: Path | None, passed_on: Mapping[str, str]
) -> Launcher:
    master = variables.get(_MASTER, "")
    if not master:
        secret = value_of(variables, _PASSWORD)
        why = "they belong to the supervisord that runs the drivers"
        _require({**variables, _PASSWORD: secret}, _ADDRESS, _PASSWORD, why)
        return SupervisorLauncher(variables[_ADDRESS], secret)
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
    return Path(folder) if folder else Path(__file__).resolve().parents[3]


def jobs_here(lake: LakeRef) -> list[str]:
    """The jobs of ``lake`` that are deployed together, in the order in which rows flow.

    They are those that ADLOOM_JOBS names, separated by commas; all if it is empty.

    Raises:
        SettingsError: it names a job that does not exist, or the connection is wrong.
    """
    name = _name(lake, os.environ)
    variables = {**os.environ, **(variables_of_connection(name) if name else {})}
    named = {name.strip() for name in variables.get(_JOBS, "").split(",") if name.strip()}
    if unknown := named - QUERIES_OF_JOB.keys():
        raise SettingsError(f"{_JOBS} names {min(unknown)!r}; there are {', '.join(QUERIES_OF_JOB)}")
    return [job for job in QUERIES_OF_JOB if job in named or not named]
