"""The mappings of the sources in the settings, ready for use."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from spark_jobs.config.settings import Settings
from spark_jobs.config.sources import FIELDS, KeptType, SourceSettings
from spark_jobs.contract.events import MICROS
from spark_jobs.errors import SettingsError
from spark_jobs.mapping.coercion import coerced, converted
from spark_jobs.mapping.errors import MappingError, RefusalError
from spark_jobs.mapping.expression import Expression, parse_expression
from spark_jobs.mapping.paths import Path
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
        when: which records it means; None: all.
        fields: by field of an event, the expression that gives it, of the field's type.
        kept: by column that is kept, the expression that gives it, of the column's type.
    """

    name: str
    settings: SourceSettings
    when: Expression | None
    fields: Mapping[str, Expression]
    kept: Mapping[str, Expression]

    @property
    def paths(self) -> tuple[Path, ...]:
        """The paths its expressions read from a record, each once."""
        expressions = [*([self.when] if self.when else []), *self.fields.values(), *self.kept.values()]
        return tuple(dict.fromkeys(path for expression in expressions for path in expression.paths))


def compile_sources(settings: Settings) -> dict[str, SourceMapping]:
    """By name, the mappings of all sources that have one.

    Raises:
        SettingsError: an expression is not in the language, or gives another type than its field; the message says
            which, and where in it.
    """
    return {name: _compiled(name, source) for name, source in settings.sources.items() if source.has_mapping}


def _compiled(name: str, source: SourceSettings) -> SourceMapping:
    place = f"source.{name}"
    fields = {
        field: _expression(f"{place}.{'map.' if field in source.map else ''}{field}", text, _TYPES[field])
        for field, text in source.expressions.items()
    }
    kept = {
        column: _expression(f"{place}.keep.{column}", one.expression, _KEPT_TYPES[one.type])
        for column, one in source.keep.items()
    }
    when = _expression(f"{place}.when", source.when, Type.BOOLEAN) if source.when else None
    return SourceMapping(name, source, when, fields, kept)


def _expression(place: str, text: str, target: Type) -> Expression:
    try:
        expression = parse_expression(text)
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
