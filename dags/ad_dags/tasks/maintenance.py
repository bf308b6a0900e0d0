"""Maintenance of the lake: checkpoints, tables, quarantine, late events, credits, invalid traffic, ledger."""

from dataclasses import replace
from typing import Any

from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from ad_dags.job_control import paused
from ad_dags.lakes import LakeRef
from ad_dags.place import Place, find_place
from ad_dags.programs import CommandError
from ad_dags.tasks.commands import run_adloom
from spark_jobs.contracts.places import CHECKPOINTS
from spark_jobs.contracts.settings import load_settings
from spark_jobs.queries import MAINTAINED_TABLES, TABLES_BY_NAME, queries_of
from spark_jobs.runtime.releases import settings_in_use

_FAILED = 1
"""Exit code of a ledger that does not balance, and of one that could not be made."""
_OFF_BALANCE = "DOES NOT BALANCE"
"""How `adloom ledger` begins if a row is not accounted for."""


def clean_checkpoints(lake: LakeRef, params: dict[str, Any] | None = None) -> str:
    """Removes superseded checkpoints, or those in ``params["checkpoints"]``; if ``dry_run``, only lists them."""
    assert params is not None  # noqa: S101 Airflow passes it
    place, delete = place_of_started_lake(lake), [] if params["dry_run"] else ["--delete"]
    _, output = run_adloom(place, ["checkpoints", "clean", *params["checkpoints"]], delete, changes_lake=True)
    return output


def maintain_tables(lake: LakeRef, job: str) -> str:
    """Compacts and vacuums the tables that ``job`` writes while the job is paused, then resumes it.

    A table has one writer at a time, so the job is stopped first. It is resumed however this ends.
    """
    place = place_of_started_lake(lake)
    tables = [query.writes.name for query in queries_of(job)]
    with paused(place, job, "table maintenance"):
        _, output = run_adloom(place, ["maintain", *tables], changes_lake=True)
    return output


def maintain_derived(lake: LakeRef) -> str:
    """Compacts and vacuums the tables that no job writes, but commands of their own: all jobs keep running."""
    tables = [name for name in MAINTAINED_TABLES if name not in TABLES_BY_NAME]
    _, output = run_adloom(place_of_started_lake(lake), ["maintain", *tables], changes_lake=True)
    return output


def requeue_quarantine(lake: LakeRef, params: dict[str, Any] | None = None) -> str:
    """Requeues the records that ``params`` select and that fit now; if ``dry_run``, only lists them."""
    assert params is not None  # noqa: S101 Airflow passes it
    chosen = [f"--verdict={verdict}" for verdict in params["verdicts"]]
    chosen += [f"--{name}={params[name]}" for name in ("since", "until", "source") if params[name]]
    dry = ["--dry-run"] if params["dry_run"] else []
    _, output = run_adloom(place_of_started_lake(lake), ["requeue"], [*chosen, *dry], changes_lake=True)
    return output


def repair_late(lake: LakeRef, params: dict[str, Any] | None = None) -> str:
    """Brings late events to gold; if ``params["dry_run"]``, only lists what would change."""
    assert params is not None  # noqa: S101 Airflow passes it
    dry = ["--dry-run"] if params["dry_run"] else []
    _, output = run_adloom(place_of_started_lake(lake), ["repair"], dry, changes_lake=True)
    return output


def credit_conversions(lake: LakeRef, params: dict[str, Any] | None = None) -> str:
    """Brings the credits of conversions up to date; those of the window in ``params``, if there is one, again."""
    assert params is not None  # noqa: S101 Airflow passes it
    chosen = [f"--{name}={params[name]}" for name in ("from", "to") if params[name]]
    dry = ["--dry-run"] if params["dry_run"] else []
    _, output = run_adloom(place_of_started_lake(lake), ["credit"], [*chosen, *dry], changes_lake=True)
    return output


def mark_invalid(lake: LakeRef) -> str:
    """Marks invalid traffic by the rules in use, as far as events are known."""
    _, output = run_adloom(place_of_started_lake(lake), ["marks", "update"], changes_lake=True)
    return output


def balance_ledger(lake: LakeRef) -> str:
    """Brings the live ledger up to now. That it does not balance is an error."""
    code, output = run_adloom(place_of_started_lake(lake), ["ledger"], allowed=(0, _FAILED))
    if code == _FAILED:
        lines = [line.strip() for line in output.splitlines()]
        wrong = next((line for line in lines if line.startswith(_OFF_BALANCE)), None)
        if wrong is None:
            raise CommandError(lines[-1] if lines else "adloom ledger printed nothing")
        # A retry would find the same.
        raise AirflowFailException(wrong)
    return output


def place_of_started_lake(lake: LakeRef) -> Place:
    """The place, with the settings of the release that was deployed last. A lake that no job has run on is skipped.

    A task must go by the window and the gap that the drivers go by, whatever is in the file that a next release gets.
    """
    place = find_place(lake)
    if not place.lake.files.names(CHECKPOINTS):
        raise AirflowSkipException(f"no job has run on {place.lake.root} yet")
    if config := settings_in_use(place.lake):
        return replace(place, config=config, settings=load_settings(config, place.environment))
    return place
