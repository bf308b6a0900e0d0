"""Calls of declared functions: which overload fits, and its literal arguments."""

from collections.abc import Sequence

from spark_jobs.mapping.coercion import coerced, fits, is_coercible
from spark_jobs.mapping.declare import Function, Implementation, Overload, Parameter
from spark_jobs.mapping.errors import RefusalError
from spark_jobs.mapping.nodes import Call, Constant, Node
from spark_jobs.mapping.types import Value


class ArgumentError(RefusalError):
    """Raised when an argument cannot be used; ``number`` says which one, from 0."""

    def __init__(self, number: int, reason: str, remedy: str = "") -> None:
        super().__init__(reason, remedy)
        self.number = number


def call(function: Function, arguments: Sequence[Node]) -> Call:
    """``function`` of ``arguments``.

    Raises:
        RefusalError: it takes others; an ArgumentError if one is to blame.
    """
    of_count = [one for one in function.overloads if _takes(one, len(arguments))]
    if not of_count:
        raise RefusalError(f"{function.name} does not take {_counted(len(arguments))}", f"write {function.signature}")
    for one in of_count:
        if all(map(_fits, arguments, _expanded(one, len(arguments)))):
            return _bound(function, one, arguments)
    # A literal says more than a value that each record gives.
    last_first = of_count[::-1]
    for one in sorted(last_first, key=_literals, reverse=True):
        if all(map(_is_coercible, arguments, _expanded(one, len(arguments)))):
            return _bound(function, one, arguments)
    return _bound(function, of_count[-1], arguments)


def _takes(one: Overload, count: int) -> bool:
    least = sum(not parameter.is_optional for parameter in one.parameters)
    is_open = bool(one.parameters) and one.parameters[-1].is_repeated
    return least <= count and (is_open or count <= len(one.parameters))


def _literals(one: Overload) -> int:
    return sum(parameter.is_literal for parameter in one.parameters)


def _expanded(one: Overload, count: int) -> list[Parameter]:
    return [*one.parameters, *[one.parameters[-1]] * (count - len(one.parameters))][:count]


def _fits(argument: Node, parameter: Parameter) -> bool:
    return fits(argument.type, parameter.type) and _may_stand(argument, parameter)


def _is_coercible(argument: Node, parameter: Parameter) -> bool:
    return is_coercible(argument.type, parameter.type) and _may_stand(argument, parameter)


def _may_stand(argument: Node, parameter: Parameter) -> bool:
    return isinstance(argument, Constant) or not parameter.is_literal


def _bound(function: Function, one: Overload, arguments: Sequence[Node]) -> Call:
    literals: list[Value | None] = []
    others: list[Node] = []
    for number, (argument, parameter) in enumerate(zip(arguments, _expanded(one, len(arguments)), strict=True)):
        try:
            given = coerced(argument, parameter.type)
        except RefusalError as error:
            raise ArgumentError(number, f"{function.name}: {error.reason}", error.remedy) from error
        if not parameter.is_literal:
            others.append(given)
        elif isinstance(given, Constant) and given.value is not None:
            literals.append(given.value)
        else:
            raise ArgumentError(
                number, f"{function.name} takes only a literal as its {parameter.name}", f"write {function.signature}"
            )
    literals.extend(parameter.default for parameter in one.parameters[len(arguments) :])
    implementation = _implementation(one, literals)
    return Call(one.result, implementation, tuple(others), can_fail=function.can_fail, sees_null=function.sees_null)


def _implementation(one: Overload, literals: Sequence[Value | None]) -> Implementation:
    try:
        return one.bind(*literals)
    except RefusalError as error:
        first = next(number for number, parameter in enumerate(one.parameters) if parameter.is_literal)
        raise ArgumentError(first, error.reason, error.remedy) from error


def _counted(count: int) -> str:
    return "1 argument" if count == 1 else f"{count} arguments"
