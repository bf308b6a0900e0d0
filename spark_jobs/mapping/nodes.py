"""Typed expressions, and their text in Spark SQL."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol

from spark_jobs.mapping.declare import Implementation
from spark_jobs.mapping.paths import Path
from spark_jobs.mapping.sqltext import quoted
from spark_jobs.mapping.types import SQL_TYPES, Type, Value

PathSql = Callable[[Path], str]
"""SQL of the TEXT at a path."""


class Node(Protocol):
    """A part of an expression."""

    @property
    def type(self) -> Type:
        """Of its value."""

    def children(self) -> tuple["Node", ...]:
        """Its parts."""

    def sql(self, path: PathSql) -> str:
        """Spark SQL of its value; never raises at run time."""

    def failure(self, path: PathSql) -> str | None:
        """Spark SQL of whether something in it fails; never null. None: nothing can."""


@dataclass(frozen=True)
class Constant:
    """A literal."""

    type: Type
    value: Value | None

    def children(self) -> tuple[Node, ...]:
        """None."""
        return ()

    def sql(self, path: PathSql) -> str:  # noqa: ARG002 as of all nodes
        """Typed, for null too."""
        if self.value is None:
            return f"cast(null as {SQL_TYPES.get(self.type, 'string')})"
        if isinstance(self.value, bool):
            return "true" if self.value else "false"
        if isinstance(self.value, str):
            return quoted(self.value)
        if isinstance(self.value, Decimal):
            return f"cast('{self.value:f}' as {SQL_TYPES[Type.NUMBER]})"
        if isinstance(self.value, int):
            return f"cast('{self.value}' as bigint)"
        return f"timestamp'{self.value.isoformat()}'"

    def failure(self, path: PathSql) -> str | None:  # noqa: ARG002 as of all nodes
        """Never."""
        return None


@dataclass(frozen=True)
class FieldNode:
    """The value at a path."""

    path: Path
    type: Type = Type.TEXT

    def children(self) -> tuple[Node, ...]:
        """None."""
        return ()

    def sql(self, path: PathSql) -> str:
        """Of the path."""
        return path(self.path)

    def failure(self, path: PathSql) -> str | None:  # noqa: ARG002 as of all nodes
        """Never."""
        return None


@dataclass(frozen=True)
class Call:
    """A function of its arguments, all of which are evaluated.

    Attributes:
        type: of its value.
        implementation: what it does.
        arguments: those that are no literals of the function.
        can_fail: whether null for arguments that are not null is a failure.
        sees_null: whether it is evaluated for null arguments.
    """

    type: Type
    implementation: Implementation
    arguments: tuple[Node, ...]
    can_fail: bool = False
    sees_null: bool = False

    def children(self) -> tuple[Node, ...]:
        """The arguments."""
        return self.arguments

    def sql(self, path: PathSql) -> str:
        """The function's, of the arguments'."""
        return self.implementation.sql(*(argument.sql(path) for argument in self.arguments))

    def failure(self, path: PathSql) -> str | None:
        """If an argument fails, or it has all of them and no value."""
        failures = [argument.failure(path) for argument in self.arguments]
        if self.can_fail:
            given = [f"{argument.sql(path)} is not null" for argument in self.arguments if not _is_value(argument)]
            failures.append("(" + " and ".join([*given, f"{self.sql(path)} is null"]) + ")")
        return any_of(failures)


@dataclass(frozen=True)
class Conditions:
    """The value behind the first condition that is true; later ones are not evaluated."""

    type: Type
    branches: tuple[tuple[Node, Node], ...]
    otherwise: Node

    def children(self) -> tuple[Node, ...]:
        """Conditions and values."""
        return (*(node for branch in self.branches for node in branch), self.otherwise)

    def sql(self, path: PathSql) -> str:
        """A CASE."""
        branches = " ".join(f"when {condition.sql(path)} then {value.sql(path)}" for condition, value in self.branches)
        return f"(case {branches} else {self.otherwise.sql(path)} end)"

    def failure(self, path: PathSql) -> str | None:
        """If a condition up to the first true one fails, or the value behind that one."""
        rest = self.otherwise.failure(path)
        for condition, value in reversed(self.branches):
            chosen = value.failure(path)
            if chosen or rest:
                rest = f"(case when {condition.sql(path)} then {chosen or 'false'} else {rest or 'false'} end)"
            rest = any_of([condition.failure(path), rest])
        return rest


@dataclass(frozen=True)
class FirstGiven:
    """The first argument that is not null; later ones are not evaluated."""

    type: Type
    arguments: tuple[Node, ...]

    def children(self) -> tuple[Node, ...]:
        """The arguments."""
        return self.arguments

    def sql(self, path: PathSql) -> str:
        """A COALESCE."""
        return f"coalesce({', '.join(argument.sql(path) for argument in self.arguments)})"

    def failure(self, path: PathSql) -> str | None:
        """If an argument up to the first that is not null fails."""
        rest: str | None = None
        for argument in reversed(self.arguments):
            if rest:
                rest = f"({argument.sql(path)} is null and {rest})"
            rest = any_of([argument.failure(path), rest])
        return rest


@dataclass(frozen=True)
class Junction:
    """``and`` or ``or``: the right side is not evaluated if the left one decides.

    Attributes:
        left: a BOOLEAN.
        right: a BOOLEAN.
        decisive: the value of one side that decides: false for ``and``.
    """

    left: Node
    right: Node
    decisive: bool
    type: Type = Type.BOOLEAN

    def children(self) -> tuple[Node, ...]:
        """Both sides."""
        return (self.left, self.right)

    def sql(self, path: PathSql) -> str:
        """Of both sides."""
        return f"({self.left.sql(path)} {'or' if self.decisive else 'and'} {self.right.sql(path)})"

    def failure(self, path: PathSql) -> str | None:
        """If the left side fails, or the right one where it is evaluated."""
        right = self.right.failure(path)
        if right:
            right = f"(not ({self.left.sql(path)} <=> {'true' if self.decisive else 'false'}) and {right})"
        return any_of([self.left.failure(path), right])


def any_of(failures: list[str | None]) -> str | None:
    """SQL of whether one of ``failures`` is true; None without any."""
    given = list(dict.fromkeys(failure for failure in failures if failure))
    return given[0] if len(given) == 1 else f"({' or '.join(given)})" if given else None


def walk(node: Node) -> Iterator[Node]:
    """``node`` and all that it is made of, from left to right."""
    yield node
    for child in node.children():
        yield from walk(child)


def _is_value(node: Node) -> bool:
    return isinstance(node, Constant) and node.value is not None
