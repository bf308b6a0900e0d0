"""What all DAGs of adloom share: owner, patience, and who is told when a task fails."""

from datetime import UTC, datetime, timedelta
from typing import Any

from ad_dags.alerts import tell_of_failure

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
"""No run is scheduled before; none is made up for."""
_TASKS: dict[str, Any] = {
    "owner": "adloom",
    "retries": 2,
    "retry_delay": timedelta(minutes=1),
    "execution_timeout": timedelta(hours=1),
    "on_failure_callback": tell_of_failure,
}


def task_defaults(**changed: Any) -> dict[str, Any]:
    """The ``default_args`` of a DAG, with what is ``changed``."""
    return {**_TASKS, **changed}
