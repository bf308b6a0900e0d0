"""Where the jobs and their lake are: from the environment of Airflow's processes, when a task runs."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ad_dags.launchers import Launcher, SupervisorLauncher
from spark_jobs.contracts.errors import SettingsError
from spark_jobs.contracts.lake import Lake
from spark_jobs.contracts.settings import Settings, load_settings
from spark_jobs.runtime.lakes import open_lake

_LAKE, _CONFIG = "ADLOOM_LAKE", "ADLOOM_CONFIG"
_ADDRESS, _PASSWORD = "ADLOOM_SUPERVISOR_ADDRESS", "ADLOOM_SUPERVISOR_PASSWORD"
_CHECKOUT = "ADLOOM_CHECKOUT"


@dataclass(frozen=True)
class Place:
    """A lake, the settings of its jobs, and what starts their drivers."""

    location: str
    config: Path | None
    settings: Settings
    lake: Lake
    launcher: Launcher = field(repr=False)


def find_place(environment: Mapping[str, str] | None = None) -> Place:
    """The place that ``environment`` (by default the process's own) names.

    Raises:
        SettingsError: a variable is missing, or a setting is wrong.
    """
    told = os.environ if environment is None else environment
    if missing := [name for name in (_LAKE, _ADDRESS, _PASSWORD) if not told.get(name)]:
        raise SettingsError(
            f"{', '.join(missing)} not set in the environment of Airflow's processes: {_LAKE} is the lake, {_ADDRESS} "
            f"and {_PASSWORD} are those of the supervisord that runs the drivers"
        )
    config = Path(told[_CONFIG]) if told.get(_CONFIG) else None
    settings = load_settings(config, told)
    lake = open_lake(told[_LAKE], settings.s3)
    return Place(told[_LAKE], config, settings, lake, SupervisorLauncher(told[_ADDRESS], told[_PASSWORD]))


def checkout() -> Path:
    """The checkout that releases are built from: ``ADLOOM_CHECKOUT``, or the one that the DAGs lie in."""
    told = os.environ.get(_CHECKOUT)
    return Path(told) if told else Path(__file__).resolve().parents[2]
