"""The forms that the parser knows by itself: operators of any type, conditions, casts."""

import operator
from collections.abc import Callable
from typing import Any

from spark_jobs.mapping.declare import Function, Implementation
from spark_jobs.mapping.types import Value


def _null_safe_equal(left: Value | None, right: Value | None) -> bool:
    return left == right


def _between(value: Any, low: Any, high: Any) -> bool | None:
    is_above = None if value is None or low is None else value >= low
    is_below = None if value is None or high is None else value <= high
    if is_above is False or is_below is False:
        return False
    return None if is_above is None or is_below is None else True


def _is_in(value: Value | None, *members: Value | None) -> bool | None:
    if value is None:
        return None
    return True if value in members else None if None in members else False


def _greatest(*values: Any) -> Value | None:
    return max((value for value in values if value is not None), default=None)


def _least(*values: Any) -> Value | None:
    return min((value for value in values if value is not None), default=None)


def _variadic(name: str) -> Callable[..., str]:
    return lambda *values: f"{name}({', '.join(values)})"


COMPARISONS = {
    "=": Implementation("({} = {})".format, operator.eq),
    "<>": Implementation("({} <> {})".format, operator.ne),
    "<": Implementation("({} < {})".format, operator.lt),
    "<=": Implementation("({} <= {})".format, operator.le),
    ">": Implementation("({} > {})".format, operator.gt),
    ">=": Implementation("({} >= {})".format, operator.ge),
}
NULL_SAFE_EQUAL = Implementation("({} <=> {})".format, _null_safe_equal)
BETWEEN = Implementation("({} between {} and {})".format, _between)
IS_IN = Implementation(lambda value, *members: f"({value} in ({', '.join(members)}))", _is_in)
IS_NULL = Implementation("({} is null)".format, lambda value: value is None)
IS_TRUE = Implementation("({} <=> true)".format, lambda value: value is True)
IS_FALSE = Implementation("({} <=> false)".format, lambda value: value is False)
NOT = Implementation("(not {})".format, operator.not_)
NULLIF = Implementation("nullif({}, {})".format, lambda value, other: None if value == other else value)
EXTREMES = {
    "greatest": Implementation(_variadic("greatest"), _greatest),
    "least": Implementation(_variadic("least"), _least),
}

FUNCTIONS = (
    Function(
        "=",
        "a = b, a <> b, a != b, a < b, a <= b, a > b, a >= b",
        "Comparisons; null if a side is null. A text next to another type is coerced to it, next to an INTEGER to a "
        "NUMBER.",
        ("'b' > 'a'", True),
        sees_null=True,
        is_operator=True,
        aliases=("<>", "!=", "<", "<=", ">", ">=", "=="),
    ),
    Function(
        "<=>", "a <=> b", "Whether both are equal or both null; never null.", ("null <=> 1", False), is_operator=True
    ),
    Function("between", "a between b and c", "`a >= b and a <= c`.", ("2 between 1 and 3", True), is_operator=True),
    Function(
        "in",
        "a in (b, …)",
        "Whether it equals one of them; null if it does not and one is null.",
        ("'b' in ('a', 'b')", True),
        is_operator=True,
    ),
    Function(
        "is null",
        "a is [not] null, a is [not] true, a is [not] false",
        "Whether it is; never null.",
        ("null is null", True),
        is_operator=True,
    ),
    Function(
        "and",
        "a and b",
        "False if a side is false, else null if a side is null.",
        ("true and null", None),
        is_operator=True,
    ),
    Function(
        "or", "a or b", "True if a side is true, else null if a side is null.", ("true or null", True), is_operator=True
    ),
    Function("not", "not a, !a", "The opposite; null for null.", ("not true", False), is_operator=True),
    Function(
        "if", "if(condition, a, b)", "`a` if the condition is true, else `b`.", ("if(1 > 2, 'more', 'less')", "less")
    ),
    Function(
        "case",
        "case when condition then a … [else b] end, case x when value then a … [else b] end",
        "The first branch whose condition is true or whose value equals `x`; without one and without `else`, null.",
        ("case 2 when 1 then 'one' when 2 then 'two' end", "two"),
        is_operator=True,
    ),
    Function(
        "coalesce",
        "coalesce(a, …)",
        "The first that is not null.",
        ("coalesce(null, 'a', 'b')", "a"),
        aliases=("nvl", "ifnull"),
    ),
    Function("nullif", "nullif(a, b)", "Null if both are equal, else `a`.", ("nullif('-', '-')", None)),
    Function("greatest", "greatest(a, b, …)", "The largest that is not null.", ("greatest(1, 3, 2)", 3)),
    Function("least", "least(a, b, …)", "The smallest that is not null.", ("least(1, 3, 2)", 1)),
    Function(
        "cast",
        "cast(a as type), try_cast(a as type)",
        "As another type: `string`, `bigint` (or `int`, `smallint`, `tinyint`, whose range it must fit), `decimal` "
        "(NUMBER), `decimal(p, s)`, `boolean`, `timestamp`. What is no value of it fails.",
        ("cast('42' as bigint)", 42),
        is_operator=True,
        aliases=("try_cast",),
    ),
)
