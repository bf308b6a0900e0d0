"""The common part of all events of OpenLineage 2.0.2, and its standard facets."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from spark_jobs import __version__
from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import Table

_SPEC = "https://openlineage.io/spec"
_SCHEMA = f"{_SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent"
_PRODUCER = f"https://pypi.org/project/adloom/{__version__}"
_FACETS = {
    "ColumnLineageDatasetFacet": "1-2-0",
    "DataQualityAssertionsDatasetFacet": "1-1-0",
    "DatasetVersionDatasetFacet": "1-0-1",
    "DocumentationJobFacet": "1-1-0",
    "InputStatisticsInputDatasetFacet": "1-0-0",
    "JobTypeJobFacet": "2-0-4",
    "OutputStatisticsOutputDatasetFacet": "1-0-2",
    "ParentRunFacet": "1-1-0",
    "ProcessingEngineRunFacet": "1-1-1",
    "SchemaDatasetFacet": "1-2-0",
    "TestRunFacet": "1-0-1",
}
"""By facet, the version of its schema."""
Event = dict[str, Any]
Facets = dict[str, dict[str, object]]


def facet(kind: str, /, **values: object) -> dict[str, object]:
    """A facet with the fields ``values``; ``kind`` is the name of its schema."""
    url = f"{_SPEC}/facets/{_FACETS[kind]}/{kind}.json#/$defs/{kind}"
    return {"_producer": _PRODUCER, "_schemaURL": url, **values}


def complete(
    subject: str,
    job: Mapping[str, object],
    settings: Settings,
    at: datetime,
    *,
    inputs: Iterable[dict[str, object]],
    outputs: Iterable[dict[str, object]] = (),
    facets: Facets | None = None,
) -> Event:
    """The event that a run is complete.

    Args:
        subject: identifies what the event reports, and nothing else. The id of the run is derived from it, so an event
            that is sent again is no second run.
        job: its ``name`` and ``facets``.
        settings: name the namespace of the job.
        at: the time of the event.
        inputs: the datasets that were read.
        outputs: those that were written.
        facets: of the run, besides the one that names adloom.
    """
    engine = facet("ProcessingEngineRunFacet", version=__version__, name="adloom")
    return {
        "eventType": "COMPLETE",
        "eventTime": at.isoformat(timespec="milliseconds"),
        "producer": _PRODUCER,
        "schemaURL": _SCHEMA,
        "run": {"runId": str(uuid5(NAMESPACE_URL, subject)), "facets": {"processing_engine": engine, **(facets or {})}},
        "job": {"namespace": settings.lineage.namespace, **job},
        "inputs": list(inputs),
        "outputs": list(outputs),
    }


def job_type(processing: str, kind: str) -> dict[str, object]:
    """The facet that says how a job runs, ``BATCH`` or ``STREAMING``, and what it is."""
    return facet("JobTypeJobFacet", processingType=processing, integration="ADLOOM", jobType=kind)


def documentation(description: str) -> dict[str, object]:
    """The facet that says what a job does."""
    return facet("DocumentationJobFacet", description=description)


def version(number: int) -> dict[str, object]:
    """The facet with the version of a table."""
    return facet("DatasetVersionDatasetFacet", datasetVersion=str(number))


def schema(table: Table) -> dict[str, object]:
    """The facet with the columns of ``table``, and what they mean."""
    fields = [
        {"name": column.name, "type": column.sql_type, "description": column.meaning, "ordinal_position": number}
        for number, column in enumerate(table.columns, start=1)
    ]
    return facet("SchemaDatasetFacet", fields=fields)
