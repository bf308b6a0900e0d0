"""Picks up jobs that nobody watches.

Every few minutes it looks for jobs that are wanted and that no task of `supervise_<job>` has looked at for two minutes.
It looks after each of them once and starts its supervising DAG. If the triggerer or the scheduler dies, the jobs keep
running and are unwatched for a few minutes only.
"""

import logging
from datetime import timedelta

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import DAG, XComArg, get_current_context, task

from ad_dags.clock import utc_now
from ad_dags.connection.lake_connection import connect
from ad_dags.connection.lakes import LakeRef
from ad_dags.defaults import DagDefaults
from ad_dags.drivers.supervision import supervising_dag_id
from ad_dags.drivers.supervision.rules import Limits
from ad_dags.drivers.supervision.watch import supervise_once
from spark_jobs.queries.registry import QUERIES_OF_JOB
from spark_jobs.streams.desired_state import UNWATCHED_AFTER, is_watched, read_desired

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
        have_watched(own)
    return dag


def have_watched(own: DagDefaults) -> XComArg:
    """Tasks that start the supervising DAGs of jobs that nobody watches. The first of them is returned."""
    unwatched: XComArg = task(task_id=find_unwatched.__name__)(find_dags_to_trigger)(own.lake, own.limits.numbers())
    supervise = TriggerDagRunOperator.partial(task_id="supervise")
    supervise.expand(trigger_dag_id=unwatched)
    return unwatched


def find_dags_to_trigger(lake: LakeRef, limits: dict[str, float]) -> list[str]:
    """Those of :func:`find_unwatched` that have no run; ``limits`` are those of :meth:`Limits.numbers`."""
    return [dag for dag in find_unwatched(lake, Limits.of(limits)) if not _has_run(dag)]


def _has_run(dag_id: str) -> bool:
    """Whether a run of the DAG goes on or is queued, as while the triggerer is away: a second one would do no good."""
    return get_current_context()["ti"].get_dr_count(dag_id, states=["running", "queued"]) > 0


def find_unwatched(lake: LakeRef, limits: Limits) -> list[str]:
    """The supervising DAGs of jobs that are wanted and unwatched. Each of these jobs is also looked after once.

    A driver that died together with its watcher is thus restarted at once, before the DAG runs. A driver that runs
    although its job was stopped on purpose is stopped.
    """
    connection, now, unwatched = connect(lake), utc_now(), []
    for job in QUERIES_OF_JOB:
        wanted = read_desired(connection.lake, job)
        if wanted is None or is_watched(connection.lake, job, now):
            continue
        if not (wanted.runs_at(now) or wanted.is_paused):
            # Started at the very moment it was stopped, or started outside of Airflow.
            if connection.launcher.inspect(job).state.is_alive:
                _log.warning("%s: stopping it: it is running, unwatched and not wanted (%s)", job, wanted.why)
                connection.launcher.stop(job)
            continue
        _log.warning("%s: nobody has watched it for %s", job, UNWATCHED_AFTER)
        supervise_once(connection.lake, connection.launcher, job, limits, now, name="reconcile")
        unwatched.append(lake.named(supervising_dag_id(job)))
    return unwatched
