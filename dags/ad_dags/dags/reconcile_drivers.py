"""Picks up jobs that nobody watches.

Every few minutes it looks for jobs that are wanted and that no task of `supervise_<job>` has looked at for two minutes.
It looks after each of them once and starts its supervising DAG. If the triggerer or the scheduler dies, the jobs keep
running and are unwatched for a few minutes only.
"""

import logging
from datetime import timedelta

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import DAG, task

from ad_dags.clock import utc_now
from ad_dags.connection.lake_connection import connect
from ad_dags.connection.lakes import LakeRef
from ad_dags.defaults import DagDefaults
from ad_dags.drivers.supervision.naming import supervising_dag_id
from ad_dags.drivers.supervision.rules import Limits, Memory
from ad_dags.drivers.supervision.watch import is_watched, supervise_once
from spark_jobs.queries.registry import QUERIES_OF_JOB
from spark_jobs.streams.desired_state import read_desired

_PATIENCE = timedelta(minutes=2)
"""A job that no watcher has looked at for this long is unwatched."""
_log = logging.getLogger(__name__)


def declare(own: DagDefaults) -> DAG:
    """The DAG, for the lake of ``own``."""
    with own.dag(
        "reconcile_drivers",
        __doc__,
        tag="streams",
        schedule=timedelta(minutes=3),
        retries=1,
        execution_timeout=timedelta(minutes=5),
    ) as dag:
        TriggerDagRunOperator.partial(task_id="supervise").expand(trigger_dag_id=task(find_unwatched)(own.lake))
    return dag


def find_unwatched(lake: LakeRef) -> list[str]:
    """The supervising DAGs of jobs that are wanted and unwatched. Each of these jobs is also looked after once.

    A driver that died together with its watcher is thus restarted at once, before the DAG runs. A driver that runs
    although its job was stopped on purpose is stopped.
    """
    connection, now, unwatched = connect(lake), utc_now(), []
    for job in QUERIES_OF_JOB:
        wanted = read_desired(connection.lake, job)
        if wanted is None or is_watched(connection.lake, job, now, patience=_PATIENCE):
            continue
        if not (wanted.runs_at(now) or wanted.is_paused):
            # Started at the very moment it was stopped, or started outside of Airflow.
            if connection.launcher.inspect(job).state.is_alive:
                _log.warning("%s: stopping it: it is running, unwatched and not wanted (%s)", job, wanted.why)
                connection.launcher.stop(job)
            continue
        _log.warning("%s: nobody has watched it for %s", job, _PATIENCE)
        supervise_once(connection.lake, connection.launcher, job, Memory(), Limits(), now, name="reconcile")
        unwatched.append(lake.named(supervising_dag_id(job)))
    return unwatched
