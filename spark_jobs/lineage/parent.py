"""The run that started this process, such as a task of Airflow: events name it as their parent."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from spark_jobs.errors import LineageError
from spark_jobs.lineage.facets import Event, facet

PARENT_ID = "OPENLINEAGE_PARENT_ID"
"""As Airflow's macro ``lineage_parent_id`` gives it, and as dbt's integration reads it: ``NAMESPACE/JOB/RUN_ID``."""
_FORM = re.compile(r"(.+)/([^/]+)/([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})")
"""A namespace may be an address, with slashes."""


@dataclass(frozen=True)
class ParentRun:
    """A run of another program, and its job."""

    namespace: str
    job: str
    run_id: str


def parent_run(environment: Mapping[str, str]) -> ParentRun | None:
    """The run that ``environment`` names; None if it names none.

    Raises:
        LineageError: the name has another form.
    """
    named = environment.get(PARENT_ID, "")
    if not named:
        return None
    found = _FORM.fullmatch(named)
    if found is None:
        raise LineageError(
            f"{PARENT_ID} {named!r} is not NAMESPACE/JOB/RUN_ID with a UUID as RUN_ID; set it to what Airflow's macro "
            "lineage_parent_id gives, or to nothing"
        )
    return ParentRun(found[1], found[2], found[3])


def within(parent: ParentRun, send: Callable[[Event], None]) -> Callable[[Event], None]:
    """Sends events by ``send``, each as a part of ``parent``."""
    of_parent = facet(
        "ParentRunFacet",
        run={"runId": parent.run_id},
        job={"namespace": parent.namespace, "name": parent.job},
    )

    def send_within(event: Event) -> None:
        run = event["run"]
        send({**event, "run": {**run, "facets": {**run["facets"], "parent": of_parent}}})

    return send_within
