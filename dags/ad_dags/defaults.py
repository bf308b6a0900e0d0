"""What all DAGs of adloom share: owner, patience, and who is told when a task fails."""

from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import DAG

from ad_dags.alerts import tell_of_failure

_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
"""No run is scheduled before; none is made up for."""
_TASKS: dict[str, Any] = {
    "owner": "adloom",
    "retries": 2,
    "retry_delay": timedelta(minutes=1),
    "execution_timeout": timedelta(hours=1),
    "on_failure_callback": tell_of_failure,
}


def adloom_dag(
    name: str, page: str | None, *, tag: str, schedule: Any = None, params: dict[str, Any] | None = None, **tasks: Any
) -> DAG:
    """A DAG of the house.

    Args:
        name: that of the file too.
        page: its page in the UI, as Markdown; the first line is the description.
        tag: what it has to do with: ``streams``, ``care`` or ``quality``.
        schedule: as Airflow takes it; by default it is triggered only.
        params: the fields of its form.
        tasks: what of the defaults of its tasks is other than in the rest of the house.
    """
    return DAG(
        name,
        description=(page or "").partition("\n")[0],
        doc_md=page,
        start_date=_BEGIN,
        schedule=schedule,
        catchup=False,
        max_active_runs=1,
        tags=["adloom", tag],
        default_args={**_TASKS, **tasks},
        params=params or {},
    )
