"""What all DAGs of adloom share: owner, retries, timeouts, and the alert on failure."""

from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import DAG

from ad_dags.alerts import alert_on_failure

_START = datetime(2026, 1, 1, tzinfo=UTC)
"""No run is scheduled before it; with ``catchup`` off, missed runs are not made up for either."""
_TASKS: dict[str, Any] = {
    "owner": "adloom",
    "retries": 2,
    "retry_delay": timedelta(minutes=1),
    "execution_timeout": timedelta(hours=1),
    "on_failure_callback": alert_on_failure,
}


def adloom_dag(
    name: str, page: str | None, *, tag: str, schedule: Any = None, params: dict[str, Any] | None = None, **tasks: Any
) -> DAG:
    """A DAG with the defaults of adloom.

    Args:
        name: the DAG's id, which is also the name of its file.
        page: its page in the UI, as Markdown; the first line is the description.
        tag: its group: ``streams``, ``maintenance`` or ``quality``.
        schedule: as Airflow takes it; without one the DAG runs only when triggered.
        params: the fields of its form.
        tasks: default arguments of its tasks that differ from those above.
    """
    return DAG(
        name,
        description=(page or "").partition("\n")[0],
        doc_md=page,
        start_date=_START,
        schedule=schedule,
        catchup=False,
        max_active_runs=1,
        tags=["adloom", tag],
        default_args={**_TASKS, **tasks},
        params=params or {},
    )
