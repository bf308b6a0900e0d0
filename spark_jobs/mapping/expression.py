"""Expressions: parsed once, rendered for Spark, evaluated in Python."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

from spark_jobs.mapping.errors import MappingError, RefusalError
from spark_jobs.mapping.evaluate import Compiled, Run, compiled
from spark_jobs.mapping.nodes import FieldNode, Node, walk
from spark_jobs.mapping.paths import Path
from spark_jobs.mapping.record import Record
from spark_jobs.mapping.schema import RecordSchema
from spark_jobs.mapping.types import Evaluated, Type

_MAX_SQL = 50_000
"""Characters. A rendering may mention an argument several times, and so grow with every level."""


@dataclass(frozen=True)
class Expression:
    """An expression of the mapping language.

    Attributes:
        text: as written.
        node: its typed tree.
    """

    text: str
    node: Node

    @property
    def type(self) -> Type:
        """Of its values."""
        return self.node.type

    @cached_property
    def paths(self) -> tuple[Path, ...]:
        """The paths it reads from the record, each once, in the order of the text."""
        return tuple(dict.fromkeys(node.path for node in walk(self.node) if isinstance(node, FieldNode)))

    @property
    def bare_path(self) -> Path | None:
        """The path, if it is nothing else."""
        return self.node.path if isinstance(self.node, FieldNode) else None

    @cached_property
    def compiled(self) -> Compiled:
        """Its evaluator."""
        return compiled(self.node)


def parse_expression(text: str, roots: Mapping[str, str] = MappingProxyType({})) -> Expression:
    """The expression that ``text`` is.

    Args:
        text: of the language.
        roots: what paths may lead into besides the record: by the name in the text, the root that paths get.

    Raises:
        MappingError: it is none of the language; the error says where and why.
    """
    # sqlglot takes a quarter of a second to import, and much of adloom parses no expressions.
    from spark_jobs.mapping.build import Builder  # noqa: PLC0415
    from spark_jobs.mapping.coercion import converted  # noqa: PLC0415
    from spark_jobs.mapping.grammar import parse_syntax  # noqa: PLC0415

    tree, paths = parse_syntax(text)
    try:
        node = Builder(text, paths, roots).build(tree)
        node = converted(node, Type.TEXT) if node.type in {Type.NULL, Type.LIST} else node
        _check_size(node)
    except RecursionError as error:
        raise MappingError(text, 0, "the expression is nested too deeply") from error
    except RefusalError as error:
        raise MappingError(text, 0, error.reason, error.remedy) from error
    return Expression(text, node)


def _check_size(node: Node) -> None:
    def path_sql(_: Path) -> str:
        return "record.p00"

    # From the inside out, so that no text is made that is much longer than allowed.
    for part in reversed(list(walk(node))):
        if len(part.sql(path_sql)) > _MAX_SQL:
            raise RefusalError("the expression is too complex for Spark: calls are nested too deeply")
    if len(node.failure(path_sql) or "") > _MAX_SQL:
        raise RefusalError("the expression is too complex for Spark: calls are nested too deeply")


def to_sql(expression: Expression, schema: RecordSchema, text: str = "text") -> str:
    """Spark SQL of the value of ``expression``; never raises at run time. The session's time zone must be UTC.

    It is for rows with the columns of ``schema.columns_sql``.

    Args:
        expression: its paths must be in ``schema``.
        schema: of the source.
        text: the column with the JSON text.
    """
    return expression.node.sql(lambda path: schema.path_sql(path, text))


def failure_sql(expression: Expression, schema: RecordSchema, text: str = "text") -> str:
    """Spark SQL of whether a function or cast in ``expression`` got a value and could give none; never null."""
    return expression.node.failure(lambda path: schema.path_sql(path, text)) or "false"


def evaluate(expression: Expression, record: Record) -> Evaluated:
    """The value of ``expression`` for ``record``, without Spark."""
    run = Run(record)
    value = expression.compiled(run)
    return Evaluated(value, run.has_failed)
