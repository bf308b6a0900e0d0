"""Which types fit together, and how a text becomes what is needed."""

from collections.abc import Iterable

from spark_jobs.mapping import casts
from spark_jobs.mapping.errors import RefusalError
from spark_jobs.mapping.nodes import Call, Constant, Node
from spark_jobs.mapping.types import Type


def fits(source: Type, target: Type) -> bool:
    """Whether ``source`` can stand where ``target`` is needed without a text being coerced."""
    return source in (target, Type.NULL) or (source is Type.INTEGER and target is Type.NUMBER)


def is_coercible(source: Type, target: Type) -> bool:
    """Whether ``source`` can stand where ``target`` is needed."""
    return fits(source, target) or (source is Type.TEXT and target not in {Type.LIST, Type.NULL})


def coerced(node: Node, target: Type) -> Node:
    """``node`` as a ``target``, if that is allowed silently.

    Raises:
        RefusalError: it is not, or ``node`` is a literal that is no ``target``.
    """
    if node.type is target:
        return node
    if not is_coercible(node.type, target):
        raise RefusalError(
            f"this is {with_article(node.type)}, and {with_article(target)} is needed",
            f"cast it: cast(… as {_cast_name(target)})",
        )
    return converted(node, target)


def converted(node: Node, target: Type) -> Node:
    """``node`` cast to ``target``.

    Raises:
        RefusalError: there is no such cast, or ``node`` is a literal that is no ``target``.
    """
    if node.type is target:
        return node
    if node.type is Type.NULL:
        return Constant(target, None)
    implementation = casts.cast(node.type, target)
    if implementation is None:
        raise RefusalError(
            f"{with_article(node.type)} cannot become {with_article(target)}", _remedy(node.type, target)
        )
    if isinstance(node, Constant):
        value = None if node.value is None else implementation.python(node.value)
        if value is None and node.value is not None:
            raise RefusalError(f"{node.value!r} is no {target}")
        assert not isinstance(value, list)  # noqa: S101 no cast gives one
        return Constant(target, value)
    return Call(target, implementation, (node,), can_fail=casts.can_fail(node.type, target))


def common_type(types: Iterable[Type], *, for_comparison: bool) -> Type:
    """The type that values of ``types`` are brought to.

    Raises:
        RefusalError: nothing fits.
    """
    given = set(types) - {Type.NULL}
    others = given - {Type.TEXT}
    if others == {Type.INTEGER, Type.NUMBER} or (for_comparison and given == {Type.INTEGER, Type.TEXT}):
        return Type.NUMBER
    if len(others) > 1 or (Type.LIST in others):
        raise RefusalError(f"{' and '.join(sorted(others))} do not go together", "cast one to the type of the other")
    return next(iter(others or given), Type.NULL)


def with_article(kind: Type) -> str:
    """As a sentence names one: "an INTEGER"."""
    return f"an {kind}" if kind is Type.INTEGER else f"a {kind}"


def _cast_name(target: Type) -> str:
    names = {Type.TEXT: "string", Type.INTEGER: "bigint", Type.NUMBER: "decimal", Type.TIME: "timestamp"}
    return names.get(target, "boolean")


def _remedy(source: Type, target: Type) -> str:
    if target is Type.TIME:
        return "use timestamp_seconds, timestamp_millis or timestamp_micros, which name the unit"
    if source is Type.TIME:
        return "use unix_seconds, unix_millis or unix_micros, which name the unit"
    if source is Type.LIST:
        return "take an element: list[0]"
    return ""
