"""Casts and coercions: from one type to another, in Spark and in Python."""

from decimal import Decimal
from functools import partial

from spark_jobs.mapping import numbers, times
from spark_jobs.mapping.declare import Implementation
from spark_jobs.mapping.functions.numeric import number_in_text_sql, number_of_text_sql
from spark_jobs.mapping.functions.time import time_of_text_sql
from spark_jobs.mapping.types import NUMBER_PRECISION, NUMBER_SCALE, SQL_TYPES, Type

_DECIMAL = SQL_TYPES[Type.NUMBER]
_TRUE = frozenset(("t", "true", "y", "yes", "1"))
_FALSE = frozenset(("f", "false", "n", "no", "0"))
INTEGER_BITS = {"tinyint": 8, "byte": 8, "smallint": 16, "short": 16, "int": 32, "integer": 32}
"""Spark's smaller integers: a cast to one of them is an INTEGER in its range."""


def _boolean_of_text(text: str) -> bool | None:
    word = text.strip(numbers.TRIMMED).lower()
    return True if word in _TRUE else False if word in _FALSE else None


def _text_of_boolean(value: bool) -> str:  # noqa: FBT001 it is the value
    return "true" if value else "false"


def _number_of_boolean(value: bool) -> Decimal:  # noqa: FBT001 it is the value
    return numbers.widened(int(value))


_TEXT, _INTEGER, _NUMBER, _BOOLEAN, _TIME = Type.TEXT, Type.INTEGER, Type.NUMBER, Type.BOOLEAN, Type.TIME
_CASTS = {
    (_TEXT, _INTEGER): Implementation("try_cast({} as bigint)".format, numbers.integer_of_text),
    (_TEXT, _NUMBER): Implementation(number_of_text_sql, numbers.number_of_text),
    (_TEXT, _BOOLEAN): Implementation("try_cast({} as boolean)".format, _boolean_of_text),
    (_TEXT, _TIME): Implementation(time_of_text_sql, times.time_of_text),
    (_INTEGER, _TEXT): Implementation("cast({} as string)".format, str),
    (_INTEGER, _NUMBER): Implementation(f"cast({{}} as {_DECIMAL})".format, numbers.widened),
    (_INTEGER, _BOOLEAN): Implementation("({} <> 0l)".format, bool),
    (_NUMBER, _TEXT): Implementation(
        "trim(trailing '.' from trim(trailing '0' from cast({} as string)))".format, numbers.text_of_number
    ),
    (_NUMBER, _INTEGER): Implementation("try_cast({} as bigint)".format, numbers.truncated),
    (_NUMBER, _BOOLEAN): Implementation("({} <> 0bd)".format, bool),
    (_BOOLEAN, _TEXT): Implementation("cast({} as string)".format, _text_of_boolean),
    (_BOOLEAN, _INTEGER): Implementation("cast({} as bigint)".format, int),
    (_BOOLEAN, _NUMBER): Implementation(f"cast({{}} as {_DECIMAL})".format, _number_of_boolean),
    (_TIME, _TEXT): Implementation("cast({} as string)".format, times.text_of_time),
}
_NEVER_FAIL = {pair for pair in _CASTS if _TEXT in pair[1:] or _BOOLEAN in pair[:1]} | {
    (_INTEGER, _NUMBER),
    (_INTEGER, _BOOLEAN),
    (_NUMBER, _BOOLEAN),
}


def cast(source: Type, target: Type) -> Implementation | None:
    """How ``source`` becomes ``target``; None if it does not."""
    return _CASTS.get((source, target))


def can_fail(source: Type, target: Type) -> bool:
    """Whether some value of ``source`` is none of ``target``."""
    return (source, target) not in _NEVER_FAIL


def decimal(source: Type, precision: int, scale: int) -> Implementation | None:
    """How ``source`` becomes a NUMBER that ``decimal(precision, scale)`` holds; None if it does not."""
    narrow = f"cast(try_cast({{}} as decimal({precision},{scale})) as {_DECIMAL})"
    if source is _TEXT:
        return Implementation(
            lambda text: narrow.format(number_in_text_sql(text)), partial(numbers.text_to_decimal, precision, scale)
        )
    if source in {_INTEGER, _NUMBER}:
        return Implementation(narrow.format, lambda value: numbers.decimal_cast(precision, scale, Decimal(value)))
    return None


def fits_number(precision: int, scale: int) -> bool:
    """Whether a NUMBER holds every ``decimal(precision, scale)``."""
    return 0 <= scale <= min(NUMBER_SCALE, precision) and 0 < precision <= NUMBER_PRECISION - NUMBER_SCALE + scale


def small_integer(kind: str) -> Implementation:
    """INTEGER to one that the smaller ``kind`` holds."""
    limit = 2 ** (INTEGER_BITS[kind] - 1)
    return Implementation(
        f"cast(try_cast({{}} as {kind}) as bigint)".format, lambda value: value if -limit <= value < limit else None
    )
