"""Copying the lake, so that it can be restored."""

from airflow.sdk.exceptions import AirflowSkipException

from ad_dags.lakes import LakeRef
from ad_dags.tasks.commands import run_adloom
from ad_dags.tasks.maintenance import place_of_started_lake

_TARGET = "ADLOOM_BACKUP"
"""Where copies go."""


def back_up_lake(lake: LakeRef) -> str:
    """Copies the lake to the place that its connection or the environment names."""
    place = place_of_started_lake(lake)
    target = place.environment.get(_TARGET)
    if not target:
        raise AirflowSkipException(
            f"nothing says where to copy {place.lake.root} to; set {_TARGET}, or the field backup of the connection, "
            "to a folder or s3a://bucket/prefix"
        )
    # Airflow's own keys may only read the lake, and should not be able to change copies either.
    _, output = run_adloom(place, ["backup", target], changes_lake=True)
    return output
