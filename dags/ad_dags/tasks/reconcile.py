"""Finding jobs that nobody watches."""

import logging
from datetime import timedelta

from ad_dags.clock import utc_now
from ad_dags.lakes import LakeRef
from ad_dags.place import find_place
from ad_dags.supervision.naming import supervising_dag_id
from ad_dags.supervision.rules import Limits, Memory
from ad_dags.supervision.watch import is_watched, supervise_once
from spark_jobs.queries import QUERIES_OF_JOB
from spark_jobs.runtime.wanted import read_wanted

_PATIENCE = timedelta(minutes=2)
"""A job that no watcher has looked at for this long is unwatched."""
_log = logging.getLogger(__name__)


def find_unwatched(lake: LakeRef) -> list[str]:
    """The supervising DAGs of jobs that are wanted and unwatched. Each of these jobs is also looked after once.

    A driver that died together with its watcher is thus restarted at once, before the DAG runs. A driver that runs
    although its job was stopped on purpose is stopped.
    """
    place, now, unwatched = find_place(lake), utc_now(), []
    for job in QUERIES_OF_JOB:
        wanted = read_wanted(place.lake, job)
        if wanted is None or is_watched(place.lake, job, now, patience=_PATIENCE):
            continue
        if not (wanted.runs_at(now) or wanted.is_paused):
            # Started at the very moment it was stopped, or started outside of Airflow.
            if place.launcher.inspect(job).state.is_alive:
                _log.warning("%s: stopping it: it is running, unwatched and not wanted (%s)", job, wanted.why)
                place.launcher.stop(job)
            continue
        _log.warning("%s: nobody has watched it for %s", job, _PATIENCE)
        supervise_once(place.lake, place.launcher, job, Memory(), Limits(), now, name="reconcile")
        unwatched.append(lake.named(supervising_dag_id(job)))
    return unwatched
