"""Access to the pages follows the permissions that Airflow's users have on the DAGs."""

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from fastapi import HTTPException, status


def may_see(user: BaseUser, dag: str, entity: DagAccessEntity | None = None) -> bool:
    """Whether ``user`` may read ``dag``, or ``entity`` of it."""
    return bool(
        get_auth_manager().is_authorized_dag(method="GET", access_entity=entity, details=DagDetails(id=dag), user=user)
    )


def check(user: BaseUser, dag: str, entity: DagAccessEntity | None = None) -> None:
    """Refuses a ``user`` who may not read ``dag``, or ``entity`` of it.

    Raises:
        HTTPException: 403.
    """
    if not may_see(user, dag, entity):
        part = "" if entity is None else f" ({entity.value.lower().replace('_', ' ')})"
        raise HTTPException(status.HTTP_403_FORBIDDEN, f"you have no permission to read the DAG {dag}{part}")
