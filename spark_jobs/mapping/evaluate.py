"""Expressions in plain Python."""

from collections.abc import Callable
from typing import Any

from spark_jobs.mapping.nodes import Call, Conditions, Constant, FieldNode, FirstGiven, Junction, Node
from spark_jobs.mapping.record import Record


class Run:
    """One evaluation: the record, and whether something failed."""

    __slots__ = ("has_failed", "record")

    def __init__(self, record: Record) -> None:
        self.record = record
        self.has_failed = False


Compiled = Callable[[Run], Any]
"""Gives the value of a node, and notes failures."""


def compiled(node: Node) -> Compiled:
    """A function that evaluates ``node``."""
    if isinstance(node, Constant):
        value = node.value
        return lambda _: value
    if isinstance(node, FieldNode):
        path = node.path
        return lambda run: run.record.get(path)
    if isinstance(node, Call):
        return _call(node)
    if isinstance(node, Conditions):
        return _conditions(node)
    if isinstance(node, FirstGiven):
        return _first_given([compiled(argument) for argument in node.arguments])
    assert isinstance(node, Junction)  # noqa: S101 there are no others
    return _junction(compiled(node.left), compiled(node.right), decisive=node.decisive)


def _call(node: Call) -> Compiled:
    function, can_fail = node.implementation.python, node.can_fail
    arguments = [compiled(argument) for argument in node.arguments]
    if node.sees_null:
        return lambda run: function(*[argument(run) for argument in arguments])
    if len(arguments) == 1:
        return _unary(function, arguments[0], can_fail=can_fail)

    def call(run: Run) -> Any:
        values = [argument(run) for argument in arguments]
        if None in values:
            return None
        result = function(*values)
        if result is None and can_fail:
            run.has_failed = True
        return result

    return call


def _unary(function: Callable[..., Any], argument: Compiled, *, can_fail: bool) -> Compiled:
    def call(run: Run) -> Any:
        value = argument(run)
        if value is None:
            return None
        result = function(value)
        if result is None and can_fail:
            run.has_failed = True
        return result

    return call


def _conditions(node: Conditions) -> Compiled:
    branches = [(compiled(condition), compiled(value)) for condition, value in node.branches]
    otherwise = compiled(node.otherwise)

    def choose(run: Run) -> Any:
        for condition, value in branches:
            if condition(run):
                return value(run)
        return otherwise(run)

    return choose


def _first_given(arguments: list[Compiled]) -> Compiled:
    def choose(run: Run) -> Any:
        for argument in arguments:
            value = argument(run)
            if value is not None:
                return value
        return None

    return choose


def _junction(left: Compiled, right: Compiled, *, decisive: bool) -> Compiled:
    def decide(run: Run) -> Any:
        first = left(run)
        if first is decisive:
            return decisive
        second = right(run)
        if second is decisive:
            return decisive
        return None if first is None or second is None else not decisive

    return decide
