"""Defaults of a lake's DAGs: owner, tags, retries, timeouts, the pool of tasks with Spark, the alert on failure."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import DAG

from ad_dags.alerts import alert_on_failure
from ad_dags.connection.lakes import LakeRef
from ad_dags.drivers.supervision.rules import Limits

_START = datetime(2026, 1, 1, tzinfo=UTC)
"""No run is scheduled before it; with ``catchup`` off, missed runs are not made up for either."""
_OWNER, _TAGS, _POOL = "ADLOOM_DAG_OWNER", "ADLOOM_DAG_TAGS", "ADLOOM_POOL"
_TASKS: dict[str, Any] = {
    "retries": 2,
    "retry_delay": timedelta(minutes=1),
    "execution_timeout": timedelta(hours=1),
}


def _environment(name: str, otherwise: str) -> Callable[[], str]:
    return lambda: os.environ.get(name) or otherwise


def _tags() -> tuple[str, ...]:
    return tuple(tag.strip() for tag in os.environ.get(_TAGS, "").split(",") if tag.strip())


@dataclass(frozen=True)
class DagDefaults:
    """The defaults of the DAGs of ``lake``. Owner, tags and pool default to what the environment says."""

    lake: LakeRef = field(default_factory=LakeRef)
    owner: str = field(default_factory=_environment(_OWNER, "adloom"))
    tags: tuple[str, ...] = field(default_factory=_tags)
    """In addition to ``adloom`` and the group of the DAG."""
    pool: str = field(default_factory=_environment(_POOL, "default_pool"))
    """Of tasks that start Spark, and thus a JVM. One slot means one such JVM at a time."""
    schedules: Mapping[str, Any] = field(default_factory=dict)
    """By name of a DAG, without the prefix: its schedule, if not the usual one."""
    limits: Limits = field(default_factory=Limits)
    """How patient the supervision of drivers is."""
    on_failure: Any = alert_on_failure
    """Callback or notifier, or several in a list, of a task that fails."""

    def dag(
        self,
        name: str,
        page: str | None,
        *,
        tag: str,
        schedule: Any = None,
        params: dict[str, Any] | None = None,
        is_serial: bool = False,
        **tasks: Any,
    ) -> DAG:
        """A DAG with these defaults.

        Args:
            name: the DAG's id, without the prefix.
            page: its page in the UI, as Markdown; the first line is the description.
            tag: its group: ``streams``, ``maintenance`` or ``quality``.
            schedule: as Airflow takes it; without one the DAG runs only when triggered.
            params: the fields of its form.
            is_serial: whether its tasks run one after the other, in whatever order.
            tasks: default arguments of its tasks that differ from the usual ones.
        """
        dag = DAG(
            self.lake.named(name),
            description=(page or "").partition("\n")[0],
            doc_md=page,
            start_date=_START,
            schedule=self.schedules.get(name, schedule),
            catchup=False,
            max_active_runs=1,
            tags=["adloom", tag, *self.tags],
            default_args={"owner": self.owner, "on_failure_callback": self.on_failure, **_TASKS, **tasks},
            params=params or {},
        )
        if is_serial:
            dag.max_active_tasks = 1
        return dag
