"""The contract of a lake, from its settings: what the code and the settings promise together."""

from collections.abc import Iterable

from expectations.rules import Rule
from expectations.suites import lake_rules, table_suites
from spark_jobs.config.durations import milliseconds
from spark_jobs.config.settings import Settings
from spark_jobs.config.sources import CLICK_SIDE, FIELDS, SourceSettings, kept_columns
from spark_jobs.contract import events
from spark_jobs.contract.contract import (
    ColumnTerms,
    Contract,
    Expectation,
    FieldTerms,
    KeptTerms,
    RecordTerms,
    SourceTerms,
    TableTerms,
)
from spark_jobs.contract.tables import ATTRIBUTIONS, BRONZE_EVENTS, CREDIT_TABLES, SILVER_EVENTS, Column, Table
from spark_jobs.queries.registry import VALIDATED_TABLES, writer_of
from spark_jobs.queries.state_settings import setting_text

_NO_PROMISE = ("initial_state", "feed")
"""Settings of a query that say nothing of its rows."""
_MAX_LENGTHS = {
    **dict.fromkeys(events.ID_FIELDS, events.MAX_ID_CHARACTERS),
    **events.TEXT_LIMITS,
    "currency": events.CURRENCY_CHARACTERS,
}
_RECORD_RULES = (
    (events.INVALID_UTF8, "The record is UTF-8."),
    (events.MALFORMED_JSON, "The record is JSON, if that is the format of its source."),
    (events.NOT_AN_OBJECT, "JSON records are objects."),
    (events.DUPLICATE_KEY, "No object has two members of one name."),
    (events.NO_SOURCE, "The record belongs to a source."),
    (events.UNKNOWN_FIELD, "The record has no field that its mapping does not read, if its source says so."),
    (events.INVALID_KEPT_COLUMN, "The values of kept columns have their types."),
)


def contract_of(settings: Settings) -> Contract:
    """The contract that ``settings`` make, with this version of the code."""
    rules = {suite.table: suite.rules for suite in table_suites(settings)}
    about = settings.contract
    return Contract(
        version=about.version,
        name=about.name,
        owner=about.owner,
        fields=tuple(map(_field, FIELDS)),
        records=tuple(_records(settings)),
        sources=tuple(_source(name, source) for name, source in settings.sources.items()),
        tables=tuple(_table(table, settings, rules[table]) for table in VALIDATED_TABLES),
        lake=tuple(_expectation(rule, ()) for rule in lake_rules(settings)),
    )


def _field(name: str) -> FieldTerms:
    column = next(column for column in SILVER_EVENTS.columns if column.name == name)
    verdicts = [verdict for verdict in (events.missing(name), events.invalid(name)) if verdict in events.VERDICTS]
    if name == "event_time":
        verdicts.append(events.EVENT_TIME_IN_FUTURE)
    return FieldTerms(
        name=name,
        type=column.sql_type,
        meaning=column.meaning,
        event_types=tuple(kind for kind, names in events.TYPE_FIELDS.items() if name in names),
        required=name not in events.OPTIONAL_FIELDS,
        max_length=_MAX_LENGTHS.get(name),
        minimum=0 if name in events.MICROS else None,
        verdicts=tuple(verdicts),
    )


def _records(settings: Settings) -> Iterable[RecordTerms]:
    yield RecordTerms(
        verdict=events.RECORD_TOO_LARGE,
        meaning="The record is not longer than the limit.",
        limit=settings.ingest.max_record_bytes,
        unit="bytes",
    )
    yield RecordTerms(
        verdict=events.EVENT_TIME_IN_FUTURE,
        meaning="The event happened no later after its receipt than the limit.",
        limit=milliseconds(settings.ingest.max_future_skew),
        unit="ms",
    )
    yield from (RecordTerms(verdict=verdict, meaning=meaning) for verdict, meaning in _RECORD_RULES)


def _source(name: str, source: SourceSettings) -> SourceTerms:
    return SourceTerms(
        name=name,
        topics=source.topics,
        path=source.path,
        files=source.files,
        format=source.format.value,
        encoding=source.encoding.differing,
        each=source.each,
        also=source.also,
        when=source.when,
        expressions=source.expressions,
        let=source.let,
        keep=tuple(
            KeptTerms(name=name, type=kept.type.value, expression=kept.expression) for name, kept in source.keep.items()
        ),
        may_lack=source.may_lack,
        lenient=source.lenient,
        unknown=source.unknown.value,
    )


def _table(table: Table, settings: Settings, rules: Iterable[Rule]) -> TableTerms:
    columns = (*table.columns, *_kept(table, settings))
    names = [column.name for column in columns]
    return TableTerms(
        name=table.name,
        path=table.path,
        meaning=table.meaning,
        columns=tuple(ColumnTerms(name=one.name, type=one.sql_type, meaning=one.meaning) for one in columns),
        partition_by=table.partition_by,
        key=table.key,
        settings=_settings_of(table, settings),
        expectations=tuple(_expectation(rule, names) for rule in rules),
    )


def _kept(table: Table, settings: Settings) -> Iterable[Column]:
    """The kept columns of ``table``."""
    kept = kept_columns(settings.source)
    if table in (BRONZE_EVENTS, SILVER_EVENTS):
        yield from kept
    if table == ATTRIBUTIONS:
        yield from (Column(one.name, one.sql_type, f"{one.meaning}: of the impression") for one in kept)
        yield from (Column(f"{CLICK_SIDE}{one.name}", one.sql_type, f"{one.meaning}: of the click") for one in kept)


def _settings_of(table: Table, settings: Settings) -> dict[str, str]:
    """The settings that say what the rows of ``table`` mean; for records as received, the rules about records do."""
    if table in CREDIT_TABLES:
        return {f"credit.{one}": setting_text(settings, f"credit.{one}") for one in type(settings.credit).model_fields}
    query = writer_of(table)
    if not query.reads:
        return {}
    section = getattr(settings, query.name, None)
    own = [f"{query.name}.{name}" for name in type(section).model_fields] if section else []
    state = [one.name for one in query.state if one.name.partition(".")[0] != "spark"]
    names = [name for name in dict.fromkeys([*own, *state]) if name.partition(".")[2] not in _NO_PROMISE]
    return {name: setting_text(settings, name) for name in names}


def _expectation(rule: Rule, columns: Iterable[str]) -> Expectation:
    return Expectation(
        name=rule.name,
        kind=rule.kind.value,
        column=rule.column,
        meaning=rule.reason,
        severity=rule.severity.value,
        when=rule.when,
        values=tuple(str(value) for value in rule.values),
        minimum=rule.minimum,
        maximum=rule.maximum,
        mostly=rule.mostly,
        violation=rule.violation if rule.column in columns else "",
    )
