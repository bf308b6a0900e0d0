"""Events for validations: what each rule found is a fact about the tables that were read.

A validation is a run with inputs and no output. The results of a table's rules are an input facet of the table; those
of the rules about the tables together belong to no single one, so they are a facet of the run.
"""

from collections.abc import Iterator

from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import Table
from spark_jobs.contract.validation import RuleResult, Validation
from spark_jobs.lake.layout import Lake
from spark_jobs.lineage.facets import Event, complete, documentation, facet, job_type, schema, version
from spark_jobs.lineage.naming import name_of_table
from spark_jobs.queries.registry import VALIDATED_TABLES

_SUMMARY = "Validates what is new in the tables against the expectations."


def event_of_validation(found: Validation, lake: Lake, settings: Settings) -> Event:
    """The event that the validation of ``lake`` is complete, whether rules hold or not."""
    return complete(
        f"{lake.root}#validation {found.at.isoformat()}",
        {
            "name": "validate",
            "facets": {"jobType": job_type("BATCH", "TEST"), "documentation": documentation(_SUMMARY)},
        },
        settings,
        found.at,
        inputs=_inputs(found, lake),
        facets={"test": facet("TestRunFacet", tests=[_test(rule) for rule in found.together])},
    )


def _inputs(found: Validation, lake: Lake) -> Iterator[dict[str, object]]:
    for table in VALIDATED_TABLES:
        if (validated := found.tables.get(table.name)) is None:
            continue
        name = name_of_table(lake, table)
        dataset: dict[str, object] = {
            "namespace": name.namespace,
            "name": name.name,
            "facets": {"version": version(validated.version), "schema": schema(table)},
        }
        if validated.rules:
            assertions = [_assertion(rule, table) for rule in validated.rules]
            dataset["inputFacets"] = {
                "inputStatistics": facet("InputStatisticsInputDatasetFacet", rowCount=validated.rows),
                "dataQualityAssertions": facet("DataQualityAssertionsDatasetFacet", assertions=assertions),
            }
        yield dataset


def _assertion(rule: RuleResult, table: Table) -> dict[str, object]:
    return {
        "assertion": rule.kind,
        "success": rule.holds,
        # A rule about a number that is computed for it is about the whole table.
        **({"column": rule.column} if rule.column in table.column_names else {}),
        **_about(rule),
        # Of some rules a share of the rows may break them.
        **({"expected": "0"} if rule.mostly == 1.0 else {"params": {"mostly": rule.mostly}}),
    }


def _test(rule: RuleResult) -> dict[str, object]:
    return {"type": rule.kind, "status": "pass" if rule.holds else "fail", **_about(rule)}


def _about(rule: RuleResult) -> dict[str, object]:
    return {
        "name": rule.name,
        "description": rule.reason,
        "severity": "error" if rule.is_critical else "warn",
        **({} if rule.found is None else {"actual": str(rule.found)}),
    }
