"""The types of the mapping language, and their values in Python."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

Value = str | int | Decimal | bool | datetime
"""A value in Python: TEXT, INTEGER, NUMBER, BOOLEAN, TIME (aware, UTC). None stands for null."""


class Type(StrEnum):
    """The type of an expression."""

    TEXT = "TEXT"
    INTEGER = "INTEGER"
    NUMBER = "NUMBER"
    BOOLEAN = "BOOLEAN"
    TIME = "TIME"
    LIST = "LIST"
    """Of texts: what ``split`` gives. Only an element of it can be the value of an expression."""
    NULL = "NULL"
    """Of the literal ``null``, which fits everywhere."""


NUMBER_PRECISION = 30
NUMBER_SCALE = 9
SQL_TYPES = {
    Type.TEXT: "string",
    Type.INTEGER: "bigint",
    Type.NUMBER: f"decimal({NUMBER_PRECISION},{NUMBER_SCALE})",
    Type.BOOLEAN: "boolean",
    Type.TIME: "timestamp",
}
"""The types of Spark that hold these."""
MEANINGS = {
    Type.TEXT: "Unicode text; what every path gives",
    Type.INTEGER: "a whole number of 64 bits",
    Type.NUMBER: "an exact decimal: 21 digits before the point, 9 behind it",
    Type.BOOLEAN: "`true` or `false`",
    Type.TIME: "a point in time, to the microsecond, in the years 0001 to 9999",
}
MIN_INTEGER, MAX_INTEGER = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True)
class Evaluated:
    """The result of an expression for a record.

    Attributes:
        value: None for null.
        has_failed: whether a function or cast in it got a value and could give none.
    """

    value: Value | None
    has_failed: bool
