"""What OpenLineage 2.0.2 asks of the events and facets that adloom sends, in a JSON schema of our own.

Stricter than the original in one thing: a facet or a field that adloom does not know how to send is a mistake.
"""

from typing import Any

from jsonschema import Draft202012Validator

_TEXT, _NUMBER = {"type": "string", "minLength": 1}, {"type": "integer", "minimum": 0}
_UUID = {"type": "string", "pattern": "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"}
_PARAMS = {"params": {"type": "object"}}


def _object(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }


def _list(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item}


def _facets(**known: tuple[str, dict[str, Any], dict[str, Any]]) -> dict[str, Any]:
    """Facets by name: each with the kind that its schema is of, its fields, and those that may be missing."""
    return _object(
        {},
        {
            name: _object(
                {
                    "_producer": {"type": "string", "pattern": "^https://"},
                    "_schemaURL": {
                        "type": "string",
                        "pattern": rf"^https://openlineage\.io/spec/facets/\d-\d-\d/{kind}\.json#/\$defs/{kind}$",
                    },
                    **required,
                },
                optional,
            )
            for name, (kind, required, optional) in known.items()
        },
    )


_NAMED = {"namespace": _TEXT, "name": _TEXT}
_CHECK = {"severity": {"enum": ["error", "warn"]}, "name": _TEXT, "description": _TEXT, "actual": _TEXT}
_RUN = _facets(
    processing_engine=("ProcessingEngineRunFacet", {"version": _TEXT}, {"name": _TEXT}),
    parent=("ParentRunFacet", {"run": _object({"runId": _UUID}), "job": _object(_NAMED)}, {}),
    test=(
        "TestRunFacet",
        {"tests": _list(_object({"name": _TEXT, "status": {"enum": ["pass", "fail"]}}, {"type": _TEXT, **_CHECK}))},
        {},
    ),
)
_JOB = _facets(
    jobType=(
        "JobTypeJobFacet",
        {"processingType": {"enum": ["BATCH", "STREAMING"]}, "integration": _TEXT},
        {"jobType": _TEXT},
    ),
    documentation=("DocumentationJobFacet", {"description": _TEXT}, {}),
)
_COLUMN = _object({"inputFields": _list(_object({**_NAMED, "field": _TEXT}))})
_DATASET = _facets(
    version=("DatasetVersionDatasetFacet", {"datasetVersion": _TEXT}, {}),
    schema=(
        "SchemaDatasetFacet",
        {"fields": _list(_object({"name": _TEXT}, {"type": _TEXT, "description": _TEXT, "ordinal_position": _NUMBER}))},
        {},
    ),
    columnLineage=("ColumnLineageDatasetFacet", {"fields": {"type": "object", "additionalProperties": _COLUMN}}, {}),
)
_ASSERTION = _object(
    {"assertion": _TEXT, "success": {"type": "boolean"}}, {"column": _TEXT, "expected": _TEXT, **_CHECK, **_PARAMS}
)
_INPUT = _facets(
    inputStatistics=("InputStatisticsInputDatasetFacet", {}, {"rowCount": _NUMBER}),
    dataQualityAssertions=("DataQualityAssertionsDatasetFacet", {"assertions": _list(_ASSERTION)}, {}),
)
_OUTPUT = _facets(
    outputStatistics=("OutputStatisticsOutputDatasetFacet", {}, {"rowCount": _NUMBER, "fileCount": _NUMBER})
)
_EVENT = _object(
    {
        "eventType": {"const": "COMPLETE"},
        "eventTime": {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00$"},
        "producer": {"type": "string", "pattern": "^https://"},
        "schemaURL": {"const": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"},
        "run": _object({"runId": _UUID}, {"facets": _RUN}),
        "job": _object(_NAMED, {"facets": _JOB}),
        "inputs": _list(_object(_NAMED, {"facets": _DATASET, "inputFacets": _INPUT})),
        "outputs": _list(_object(_NAMED, {"facets": _DATASET, "outputFacets": _OUTPUT})),
    }
)


def check_event(event: dict[str, Any]) -> None:
    """Raises an error unless ``event`` is as OpenLineage wants it."""
    Draft202012Validator(_EVENT).validate(event)
