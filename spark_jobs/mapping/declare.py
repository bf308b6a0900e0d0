"""How a function of the language is declared: once, for the parser, Spark, Python and the docs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from spark_jobs.mapping.types import Type, Value

Example = tuple[str, Value | None]
"""An expression and its value."""


@dataclass(frozen=True)
class Implementation:
    """A function with its literal arguments bound.

    Attributes:
        sql: SQL of the result, from the SQL of the other arguments; never raises at run time.
        python: the result, from their values; never raises.
    """

    sql: Callable[..., str]
    python: Callable[..., Value | list[str] | None]


@dataclass(frozen=True)
class Parameter:
    """One argument of a function.

    Attributes:
        name: as the docs show it.
        type: what it must be, or is coerced to.
        is_literal: must be a literal, which is given to ``bind``.
        is_optional: may be left out; ``bind`` then gets ``default``.
        is_repeated: may be given several times; the last parameter.
        default: of an optional literal.
    """

    name: str
    type: Type
    is_literal: bool = False
    is_optional: bool = False
    is_repeated: bool = False
    default: Value | None = None


@dataclass(frozen=True)
class Overload:
    """One way to call a function.

    Attributes:
        parameters: in order.
        result: the type of the value.
        bind: gives the implementation for the literal arguments; raises RefusalError if they cannot be used.
    """

    parameters: tuple[Parameter, ...]
    result: Type
    bind: Callable[..., Implementation]


@dataclass(frozen=True)
class Function:
    """A function, operator or form of the language.

    Attributes:
        name: in lower case; an operator's is its sign.
        signature: as the docs show it.
        meaning: one or two sentences.
        example: which a test evaluates in both engines.
        overloads: tried in order; text is coerced for the last one that fits. None: a form that the parser knows.
        can_fail: whether null for arguments that are not null counts as a failure.
        sees_null: whether it is evaluated for null arguments; others give null.
        is_sparks: whether the example means the same in Spark SQL.
        is_operator: not written as a call.
        aliases: other names.
    """

    name: str
    signature: str
    meaning: str
    example: Example
    overloads: tuple[Overload, ...] = ()
    can_fail: bool = False
    sees_null: bool = False
    is_sparks: bool = True
    is_operator: bool = False
    aliases: tuple[str, ...] = field(default=())


def always(
    sql: str | Callable[..., str], python: Callable[..., Value | list[str] | None]
) -> Callable[..., Implementation]:
    """For a function without literal arguments: its SQL as a template with ``{}``, or made from its arguments."""
    implementation = Implementation(sql.format if isinstance(sql, str) else sql, python)
    return lambda: implementation


def overload(
    types: str | Sequence[Parameter],
    result: Type,
    sql: str | Callable[..., str],
    python: Callable[..., Value | list[str] | None],
) -> Overload:
    """An overload without literal arguments; ``types`` may be names, as in ``text TEXT, count INTEGER``."""
    return Overload(parameters(types), result, always(sql, python))


def parameters(types: str | Sequence[Parameter]) -> tuple[Parameter, ...]:
    """Parameters from text such as ``text TEXT, count INTEGER, more TEXT...``; ``=`` in front marks literals."""
    if not isinstance(types, str):
        return tuple(types)
    return tuple(_parameter(*part.split()) for part in types.split(",") if part.strip())


def _parameter(name: str, kind: str) -> Parameter:
    is_repeated = kind.endswith("...")
    return Parameter(name.lstrip("="), Type(kind.rstrip(".")), is_literal=name.startswith("="), is_repeated=is_repeated)
