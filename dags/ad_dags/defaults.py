"""What all DAGs of adloom share: owner, tags, retries, timeouts, the pool of tasks with Spark, the alert on failure.

Owner, tags and pool come from the environment of whatever parses the DAG files; nothing is asked of Airflow.
"""

import os
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import DAG

from ad_dags.alerts import alert_on_failure

_START = datetime(2026, 1, 1, tzinfo=UTC)
"""No run is scheduled before it; with ``catchup`` off, missed runs are not made up for either."""
_OWNER, _TAGS, _POOL = "ADLOOM_DAG_OWNER", "ADLOOM_DAG_TAGS", "ADLOOM_POOL"
_TASKS: dict[str, Any] = {
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
        tags=["adloom", tag, *_more_tags()],
        default_args={"owner": os.environ.get(_OWNER) or "adloom", **_TASKS, **tasks},
        params=params or {},
    )


def spark_pool() -> str:
    """The pool of tasks that start Spark, and thus a JVM: ``ADLOOM_POOL``. One slot means one such JVM at a time."""
    return os.environ.get(_POOL) or "default_pool"


def _more_tags() -> list[str]:
    return [tag.strip() for tag in os.environ.get(_TAGS, "").split(",") if tag.strip()]
