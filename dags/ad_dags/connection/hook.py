"""The hook of the connection type ``adloom``."""

from typing import Any

from airflow.sdk import BaseHook

from ad_dags.connection.airflow_connection import CONNECTION_TYPE
from ad_dags.connection.lake_connection import LakeConnection, connect
from ad_dags.connection.lakes import LakeRef
from ad_dags.drivers.launchers import LauncherError
from spark_jobs.errors import AdloomError
from spark_jobs.places import PROGRESS
from spark_jobs.queries.registry import QUERIES_OF_JOB


class AdloomHook(BaseHook):
    """A lake, its settings and the launcher of its drivers, as an Airflow connection describes them.

    The fields of its form are declared in :func:`ad_dags.provider.get_provider_info`.
    """

    conn_name_attr = "adloom_conn_id"
    default_conn_name = "adloom_default"
    conn_type = CONNECTION_TYPE
    hook_name = "adloom"

    def __init__(self, adloom_conn_id: str = default_conn_name, **more: Any) -> None:
        super().__init__(**more)
        self.adloom_conn_id = adloom_conn_id

    def get_conn(self) -> LakeConnection:
        """The lake's. What the connection leaves out comes from the environment.

        Raises:
            SettingsError: there is no such connection, or it is incomplete or wrong.
        """
        return connect(LakeRef(self.adloom_conn_id))

    def test_connection(self) -> tuple[bool, str]:
        """Opens the lake and asks the launcher for each driver. Returns whether both answered, and what was found."""
        try:
            connection = self.get_conn()
            is_empty = not connection.lake.files.names(PROGRESS)
            drivers = [connection.launcher.inspect(job) for job in QUERIES_OF_JOB]
        except (AdloomError, LauncherError) as error:
            return False, str(error)
        states = ", ".join(f"{driver.job} {driver.state}" for driver in drivers)
        return True, f"the lake {connection.location} {'is empty' if is_empty else 'answers'}; drivers: {states}"
