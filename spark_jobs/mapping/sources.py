"""The mappings of the sources in the settings, ready for use."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from spark_jobs.config.settings import Settings
from spark_jobs.config.sources import FIELDS, KeptType, SourceSettings
from spark_jobs.contract.events import MICROS
from spark_jobs.contract.record_places import META
from spark_jobs.errors import SettingsError
from spark_jobs.mapping.coercion import coerced, converted
from spark_jobs.mapping.errors import MappingError, RefusalError
from spark_jobs.mapping.expression import Expression, evaluate, parse_expression
from spark_jobs.mapping.paths import BETWEEN_ROOT, OUTER_ROOT, OUTERMOST_ROOT, ListPath, Path, parse_list
from spark_jobs.mapping.record import Record
from spark_jobs.mapping.types import Type

_TYPES = dict.fromkeys(FIELDS, Type.TEXT) | {
    "event_time": Type.TIME,
    "is_last": Type.BOOLEAN,
    **dict.fromkeys(MICROS, Type.INTEGER),
}
_KEPT_TYPES = {
    KeptType.STRING: Type.TEXT,
    KeptType.BIGINT: Type.INTEGER,
    KeptType.DECIMAL: Type.NUMBER,
    KeptType.BOOLEAN: Type.BOOLEAN,
    KeptType.TIMESTAMP: Type.TIME,
}


@dataclass(frozen=True)
class SourceMapping:
    """The mapping of one source.

    Attributes:
        name: of the source.
        settings: of the source.
        each: the list whose elements are its records; None: its records are whole.
        lets: by the root of paths into them, texts that are read as JSON.
        when: which records it means; None: all.
        fields: by field of an event, the expression that gives it, of the field's type.
        kept: by column that is kept, the expression that gives it, of the column's type.
    """

    name: str
    settings: SourceSettings
    each: ListPath | None
    lets: Mapping[str, Expression]
    when: Expression | None
    fields: Mapping[str, Expression]
    kept: Mapping[str, Expression]

    @property
    def paths(self) -> tuple[Path, ...]:
        """The paths its expressions read from a record, each once."""
        expressions = [
            *self.lets.values(),
            *([self.when] if self.when else []),
            *self.fields.values(),
            *self.kept.values(),
        ]
        return tuple(dict.fromkeys(path for expression in expressions for path in expression.paths))

    def ready(self, record: Record) -> Record:
        """``record``, with what the paths of this mapping lead into."""
        for root, text in self.lets.items():
            if root not in record.others:
                value = evaluate(text, record).value
                record.others[root] = Record(value if isinstance(value, str) else "", is_whole=True)
        return record


def compile_sources(settings: Settings) -> dict[str, SourceMapping]:
    """By name, the mappings of all sources that have one.

    Raises:
        SettingsError: an expression is not in the language, or gives another type than its field; the message says
            which, and where in it.
    """
    sources = settings.sources
    # One that takes the records of another takes them as that one has them.
    each = {name: one.each for name, one in sources.items()}
    each |= {other: one.each for one in sources.values() for other in one.also if one.each}
    return {name: _compiled(name, one, each[name]) for name, one in sources.items() if one.has_mapping}


def no_list_reason(lists: Iterable[ListPath]) -> str:
    """Why no source means a whole record, where sources have their records in ``lists``."""
    return f"it has no list with elements at {' or '.join(map(str, lists))}"


def _compiled(name: str, source: SourceSettings, each: str) -> SourceMapping:
    place = f"source.{name}"
    of_elements = _each(f"{place}.each", each)
    given = {META: META, **_around(of_elements)}
    # Another source may have a let of the same name.
    roots = given | {let: f"{name}.{let}" for let in source.let}
    lets = {roots[let]: _expression(f"{place}.let.{let}", text, Type.TEXT, given) for let, text in source.let.items()}
    fields = {
        field: _expression(f"{place}.{'map.' if field in source.map else ''}{field}", text, _TYPES[field], roots)
        for field, text in source.expressions.items()
    }
    kept = {
        column: _expression(f"{place}.keep.{column}", one.expression, _KEPT_TYPES[one.type], roots)
        for column, one in source.keep.items()
    }
    when = _expression(f"{place}.when", source.when, Type.BOOLEAN, roots) if source.when else None
    return SourceMapping(name, source, of_elements, lets, when, fields, kept)


def _around(each: ListPath | None) -> dict[str, str]:
    """By root as it is written, the root of what lies around the records of a source."""
    if each is None:
        return {}
    if len(each.levels) == 1:
        return {OUTER_ROOT: OUTER_ROOT}
    return {OUTER_ROOT: BETWEEN_ROOT, OUTERMOST_ROOT: OUTERMOST_ROOT}


def _each(place: str, text: str) -> ListPath | None:
    if not text:
        return None
    try:
        path = parse_list(text)
    except MappingError as error:
        raise SettingsError(f"{place}, {error}\n{_pointed(error)}") from error
    first = path.levels[0]
    if first.root or not isinstance(next(iter(first.steps), ""), str):
        raise SettingsError(
            f"{place}: {text} names no list in the record; write its path, as $.events, or $ if the record is a list"
        )
    return path


def _expression(place: str, text: str, target: Type, roots: Mapping[str, str]) -> Expression:
    try:
        expression = parse_expression(text, roots)
        try:
            # A whole number is a good id: its digits.
            is_id = target is Type.TEXT and expression.type is Type.INTEGER
            node = (converted if is_id else coerced)(expression.node, target)
        except RefusalError as error:
            raise MappingError(text, 0, error.reason, error.remedy) from error
    except MappingError as error:
        raise SettingsError(f"{place}, {error}\n{_pointed(error)}") from error
    return replace(expression, node=node)


def _pointed(error: MappingError) -> str:
    """The line of the expression, with a mark under the place."""
    line = error.text.splitlines()[error.line - 1] if error.text.strip() else error.text
    return f"    {line}\n    {' ' * (error.column - 1)}^"
