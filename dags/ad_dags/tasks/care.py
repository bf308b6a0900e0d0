"""What is done now and then: cleaning checkpoints, caring for tables, validating them, finding what nobody watches."""

import logging
from datetime import timedelta
from typing import Any

from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from ad_dags.launchers import DriverState
from ad_dags.place import Place, find_place
from ad_dags.programs import CommandError
from ad_dags.tasks.commands import run_adloom
from ad_dags.tasks.supervise import dag_of, is_watched, look_and_act, pause, resume, utc_now
from ad_dags.watching import Limits, Memory
from spark_jobs.contracts.lake import CHECKPOINTS
from spark_jobs.queries import QUERIES_OF_JOB, queries_of
from spark_jobs.runtime.wanted import read_wanted

_BROKEN = 1
"""Exit code of a validation that found a critical expectation broken, and of one that could not be done."""
_PATIENCE = timedelta(minutes=2)
"""A job that nobody has looked at for so long has no watcher."""
_log = logging.getLogger(__name__)


def clean_checkpoints(params: dict[str, Any] | None = None) -> str:
    """Removes superseded checkpoints, or those that ``params["checkpoints"]`` names; tells only if ``dry_run``."""
    assert params is not None  # noqa: S101 Airflow gives it
    place, delete = _begun_place(), [] if params["dry_run"] else ["--delete"]
    _, told = run_adloom(place, ["checkpoints", "clean", *params["checkpoints"]], delete, changes_lake=True)
    return told


def maintain_tables(job: str) -> str:
    """Compacts and vacuums the tables that ``job`` writes while it pauses, and lets it run again.

    A table has one writer at a time, so the job is drained first. It is wanted again however this ends.
    """
    place = _begun_place()
    tables = [query.writes.name for query in queries_of(job)]
    is_pausing = pause(place, job, "its tables are cared for", utc_now())
    try:
        _, told = run_adloom(place, ["maintain", *tables], changes_lake=True)
    finally:
        if is_pausing:
            resume(place, job)
    return told


def backfill_window(params: dict[str, Any] | None = None) -> str:
    """Computes the window from ``params["from"]`` to ``params["to"]`` anew and tells how the live rows differ."""
    assert params is not None  # noqa: S101 Airflow gives it
    # One word each: what stands in a form is never read as an option.
    _, told = run_adloom(
        _begun_place(), ["backfill"], [f"--from={params['from']}", f"--to={params['to']}"], changes_lake=True
    )
    return told


def validate_tables() -> str:
    """Validates what is new in the tables; a warning is told, a critical expectation that fails is an error."""
    code, told = run_adloom(_begun_place(), ["validate"], ["--critical"], allowed=(0, _BROKEN))
    if code == _BROKEN:
        broken = "; ".join(line.strip() for line in told.splitlines() if line.strip().startswith("critical: "))
        if not broken:
            raise CommandError(told.splitlines()[-1] if told else "adloom validate told nothing")
        # To try again would find the same.
        raise AirflowFailException(broken)
    return told


def draw_overview() -> str:
    """Draws the page of charts of what the tables say."""
    _, told = run_adloom(_begun_place(), ["report"])
    return told


def find_unwatched() -> list[str]:
    """The supervising DAGs of the jobs that are wanted and that nobody watches over; their drivers are looked after.

    A driver that died with its watcher is started at once, so that no time is lost until the DAG runs. One that runs
    although it was stopped on purpose is drained.
    """
    place, now, unwatched = find_place(), utc_now(), []
    for job in QUERIES_OF_JOB:
        wanted = read_wanted(place.lake, job)
        if wanted is None or is_watched(place.lake, job, now, patience=_PATIENCE):
            continue
        if not (wanted.runs_at(now) or wanted.is_paused):
            # Started in the moment in which somebody stopped it, or behind Airflow's back.
            if place.launcher.look(job).state in (DriverState.STARTING, DriverState.RUNNING):
                _log.warning("%s: it runs, is not wanted (%s), and nobody watches it: draining it", job, wanted.why)
                place.launcher.drain(job)
            continue
        _log.warning("%s: nobody has watched over it for %s", job, _PATIENCE)
        look_and_act(place.lake, place.launcher, job, Memory(), Limits(), now, name="reconcile")
        unwatched.append(dag_of(job))
    return unwatched


def _begun_place() -> Place:
    """The place, whose lake has been begun; where it has not the task is skipped."""
    place = find_place()
    if not place.lake.files.names(CHECKPOINTS):
        raise AirflowSkipException(f"no job has run on {place.lake.root} yet")
    return place
