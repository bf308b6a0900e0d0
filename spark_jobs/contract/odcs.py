"""A contract as a document of the Open Data Contract Standard (ODCS) v3.1: https://bitol.io.

One document holds every source and every table: they have one version, and a mapping means nothing without the tables
that it fills. Rules that the standard knows are of type ``library``, those that need the table's columns only are
``sql`` (Spark's), and the others are ``custom``: adloom itself checks them.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from open_data_contract_standard.model import (
    CustomProperty,
    DataQuality,
    Description,
    OpenDataContractStandard,
    SchemaObject,
    SchemaProperty,
    Team,
)

from spark_jobs.contract.contract import Contract, Expectation, FieldTerms, RecordTerms, SourceTerms, TableTerms
from spark_jobs.contract.events import PERSONAL_FIELDS
from spark_jobs.contract.record_places import RECEIVED_META

_API_VERSION = "v3.1.0"
"""Nothing of v3.2 is used, and more tools read this one."""
_ENGINE = "adloom"
_LOGICAL = {
    "STRING": "string",
    "TIMESTAMP": "timestamp",
    "DATE": "date",
    "BOOLEAN": "boolean",
    "BIGINT": "integer",
    "INT": "integer",
    "DOUBLE": "number",
    "DECIMAL": "number",
    "ARRAY": "array",
    "STRUCT": "object",
}
"""By the first word of a type of Spark SQL, or of a kept column, the standard's logical type."""
_PERSONAL = {"raw", RECEIVED_META, *PERSONAL_FIELDS}
"""The fields and columns that are classified as personal data; the first two have whatever the record has."""
_SEVERITIES = {"critical": "error", "warning": "warning"}


def odcs_yaml(contract: Contract) -> str:
    """``contract`` as YAML in the form of the standard."""
    return odcs(contract).to_yaml()


def odcs(contract: Contract) -> OpenDataContractStandard:
    """``contract`` in the form of the standard."""
    objects = [*(_source(one, contract) for one in contract.sources), *map(_table, contract.tables)]
    if contract.lake:
        objects.append(_lake(contract.lake))
    return OpenDataContractStandard(
        apiVersion=_API_VERSION,
        kind="DataContract",
        id=contract.name,
        name=contract.name,
        version=contract.version,
        status="active",
        description=Description(
            purpose="Ad impressions, clicks, activity and conversions: from the records that producers send to the "
            "tables that consumers read.",
            usage="Read the tables by the names of their columns: columns may be added under a new minor version.",
        ),
        schema=objects,
        team=Team(name=contract.owner) if contract.owner else None,
    )


def _source(source: SourceTerms, contract: Contract) -> SchemaObject:
    by_name = {field.name: field for field in contract.fields}
    names = source.expressions or by_name  # adloom's own format has every field, under its own name
    fields = [_field(by_name[name], source) for name in names if name in by_name]
    kept = [_property(one.name, one.type.upper(), "kept column", logic=one.expression) for one in source.keep]
    return SchemaObject(
        id=_id("source", source.name),
        name=f"source_{source.name}",
        physicalName=", ".join(source.inputs) or None,
        physicalType="topic" if source.topics else "file",
        logicalType="object",
        description=f"Records of source {source.name}, and the events that they become.",
        properties=[*fields, *kept],
        quality=list(map(_record_rule, contract.records)),
        customProperties=list(_how_to_read(source)),
    )


def _how_to_read(source: SourceTerms) -> Iterator[CustomProperty]:
    values: dict[str, Any] = {
        "format": source.format,
        "each": source.each,
        "when": source.when,
        "also": list(source.also),
        "let": source.let,
        "mayLack": list(source.may_lack),
        "lenient": list(source.lenient),
        "unknownFields": source.unknown,
        "topics": list(source.topics),
        "path": source.path,
        "files": list(source.files),
        **source.encoding,
    }
    yield from (
        CustomProperty(property=name, value=value) for name, value in values.items() if value not in ("", [], {})
    )


def _field(field: FieldTerms, source: SourceTerms) -> SchemaProperty:
    is_required = field.required and not field.event_types and field.name not in source.may_lack
    found = _property(field.name, field.type, field.meaning, logic=source.expressions.get(field.name))
    if field.max_length is not None:
        found.logicalTypeOptions = {"minLength": 1, "maxLength": field.max_length}
    elif field.minimum is not None:
        found.logicalTypeOptions = {"minimum": field.minimum}
    found.required = is_required or None
    quality = [
        _verdict(verdict, f"A record whose {field.name} breaks its rule is quarantined.") for verdict in field.verdicts
    ]
    found.quality = quality or None
    return found


def _record_rule(rule: RecordTerms) -> DataQuality:
    return _verdict(rule.verdict, rule.meaning, {"limit": rule.limit, "unit": rule.unit} if rule.unit else None)


def _verdict(verdict: str, meaning: str, more: dict[str, Any] | None = None) -> DataQuality:
    """A rule that is tried on each record; ``verdict`` is that of the records that break it."""
    return DataQuality(
        type="custom",
        name=verdict,
        description=meaning,
        engine=_ENGINE,
        implementation={"verdict": verdict, **(more or {})},
        severity="error",
    )


def _table(table: TableTerms) -> SchemaObject:
    own = {column.name for column in table.columns}
    of_columns: dict[str, list[DataQuality]] = {}
    of_table: list[DataQuality] = []
    for rule in table.expectations:
        found = _quality(rule)
        is_of_column = rule.column in own and found.type == "library"
        (of_columns.setdefault(rule.column, []) if is_of_column else of_table).append(found)
    required = {rule.column for rule in table.expectations if rule.kind == "not_null" and _is_plain(rule)}
    properties = [_property(column.name, column.type, column.meaning) for column in table.columns]
    for found_property in properties:
        name = str(found_property.name)
        found_property.required = name in required or None
        found_property.quality = of_columns.get(name)
        if name in table.partition_by:
            found_property.partitioned, found_property.partitionKeyPosition = True, table.partition_by.index(name) + 1
        if name in table.key:
            found_property.primaryKey, found_property.primaryKeyPosition = True, table.key.index(name) + 1
    return SchemaObject(
        id=_id("table", table.name),
        name=table.name,
        physicalName=table.path,
        physicalType="table",
        logicalType="object",
        description=table.meaning,
        properties=properties,
        quality=of_table or None,
        customProperties=[CustomProperty(property=name, value=value) for name, value in table.settings.items()] or None,
    )


def _lake(rules: Iterable[Expectation]) -> SchemaObject:
    return SchemaObject(
        id="lake",
        name="lake",
        physicalType="report",
        logicalType="object",
        description="Counts over all tables, in one row that validation computes.",
        quality=list(map(_quality, rules)),
    )


def _property(name: str, sql_type: str, meaning: str, *, logic: str | None = None) -> SchemaProperty:
    word = sql_type.partition("(")[0].partition("<")[0].upper()
    found = SchemaProperty(
        name=name, logicalType=_LOGICAL.get(word), physicalType=sql_type, description=meaning, transformLogic=logic
    )
    if name in _PERSONAL:
        found.classification = "personal"
    if word == "ARRAY":
        inner = sql_type[len("ARRAY<") : -1]
        found.items = SchemaProperty(logicalType=_LOGICAL.get(inner.partition("<")[0].upper()), physicalType=inner)
    return found


def _is_plain(rule: Expectation) -> bool:
    """Whether it is a promise about every row."""
    return not rule.when and rule.mostly == 1.0 and rule.severity == "critical"


def _quality(rule: Expectation) -> DataQuality:
    found = DataQuality(name=rule.name, description=rule.meaning, severity=_SEVERITIES[rule.severity])
    if rule.violation and not rule.when and rule.kind == "not_null":
        found.type, found.metric, found.dimension = "library", "nullValues", "completeness"
    elif rule.violation and not rule.when and rule.kind == "in_set":
        found.type, found.metric, found.dimension = "library", "invalidValues", "conformity"
        found.arguments = {"validValues": list(rule.values)}
    elif rule.violation:
        found.type, found.query = "sql", f"SELECT COUNT(*) FROM {{object}} WHERE {rule.violation}"
    else:
        found.type, found.engine = "custom", _ENGINE
        found.implementation = {
            "rule": rule.name,
            **rule.model_dump(include={"kind", "column", "when", "minimum", "maximum"}, exclude_none=True),
        }
        return found
    if rule.mostly == 1.0:
        found.mustBe = 0
    else:
        found.unit, found.mustBeLessOrEqualTo = "percent", round(100 * (1 - rule.mostly), 6)
    return found


def _id(kind: str, name: str) -> str:
    """A technical name; other characters than the standard allows are written by their code."""
    return f"{kind}-" + "".join(
        one if one.isascii() and (one.isalnum() or one in "-_") else f"_x{ord(one):x}_" for one in name
    )
