"""Arithmetic."""

from decimal import Decimal
from functools import partial

from spark_jobs.contract.currencies import MINOR_DIGITS
from spark_jobs.mapping import numbers
from spark_jobs.mapping.declare import Function, Implementation, Overload, Parameter, overload
from spark_jobs.mapping.errors import RefusalError
from spark_jobs.mapping.sqltext import quoted
from spark_jobs.mapping.types import NUMBER_SCALE, SQL_TYPES, Type

_MICRO_DIGITS = 6
_INTEGER, _NUMBER = Type.INTEGER, Type.NUMBER
_DECIMAL = SQL_TYPES[_NUMBER]
_INTEGERS = "left INTEGER, right INTEGER"
_NUMBERS = "left NUMBER, right NUMBER"
_TRIMMED_NUMBER = rf"\A[\x00-\x20\x7f]*+({numbers.NUMBER_PATTERN})[\x00-\x20\x7f]*+\z"


def number_in_text_sql(text: str) -> str:
    """SQL of the text of the number that ``text`` is; empty if it is none."""
    return f"regexp_extract({text}, {quoted(_TRIMMED_NUMBER)}, 1)"


def number_of_text_sql(text: str) -> str:
    """SQL of TEXT to NUMBER."""
    return _decimal(number_in_text_sql(text))


def _decimal(operation: str) -> str:
    return f"try_cast({operation} as {_DECIMAL})"


def _micros_sql(number: str) -> str:
    return f"try_cast(try_cast({number} as decimal(25,6)) * 1000000bd as bigint)"


def _bind_round(digits: int) -> Implementation:
    if not 0 <= digits <= NUMBER_SCALE:
        raise RefusalError(f"round takes 0 to {NUMBER_SCALE} digits, not {digits}")
    return Implementation(
        lambda number: _decimal(f"round({number}, {digits})"), partial(numbers.rounded, step=Decimal(1).scaleb(-digits))
    )


def _micros_of_minor_sql(amount: str, currency: str) -> str:
    codes: dict[int, list[str]] = {}
    for code, digits in MINOR_DIGITS.items():
        codes.setdefault(digits, []).append(quoted(code))
    factors = " ".join(
        f"when {currency} in ({', '.join(one)}) then {10 ** (_MICRO_DIGITS - digits)}l" for digits, one in codes.items()
    )
    return f"try_multiply({amount}, case {factors} end)"


def _micros_of_minor(amount: int, currency: str) -> int | None:
    digits = MINOR_DIGITS.get(currency)
    return None if digits is None else numbers.in_range(amount * 10 ** (_MICRO_DIGITS - digits))


def _negated(number: Decimal) -> Decimal:
    return number.copy_negate() if number else number


FUNCTIONS = (
    Function(
        "+",
        "a + b",
        "The sum, exactly. Two INTEGERs give an INTEGER, anything else a NUMBER; a text counts as a NUMBER. What is "
        "out of range fails.",
        ("1.5 + 2", Decimal("3.5")),
        (
            overload(_INTEGERS, _INTEGER, "try_add({}, {})", lambda a, b: numbers.in_range(a + b)),
            overload(_NUMBERS, _NUMBER, _decimal("({} + {})"), numbers.plus),
        ),
        can_fail=True,
        is_operator=True,
    ),
    Function(
        "-",
        "a - b",
        "The difference, likewise.",
        ("1.5 - 2", Decimal("-0.5")),
        (
            overload(_INTEGERS, _INTEGER, "try_subtract({}, {})", lambda a, b: numbers.in_range(a - b)),
            overload(_NUMBERS, _NUMBER, _decimal("({} - {})"), numbers.minus),
        ),
        can_fail=True,
        is_operator=True,
    ),
    Function(
        "*",
        "a * b",
        "The product, likewise; of NUMBERs, rounded half up to 6 decimals.",
        ("1.5 * 2", Decimal(3)),
        (
            overload(_INTEGERS, _INTEGER, "try_multiply({}, {})", lambda a, b: numbers.in_range(a * b)),
            overload(_NUMBERS, _NUMBER, _decimal("try_multiply({}, {})"), numbers.times),
        ),
        can_fail=True,
        is_operator=True,
    ),
    Function(
        "/",
        "a / b",
        "The quotient as a NUMBER, rounded half up to 8 decimals. Division by zero fails.",
        ("1 / 8", Decimal("0.125")),
        (overload(_NUMBERS, _NUMBER, _decimal("try_divide({}, {})"), numbers.divided),),
        can_fail=True,
        is_sparks=False,
        is_operator=True,
    ),
    Function(
        "%",
        "a % b, mod(a, b)",
        "The remainder, with the sign of `a`. Division by zero fails.",
        ("-7 % 3", -1),
        (
            overload(_INTEGERS, _INTEGER, "try_mod({}, {})", numbers.integer_remainder),
            overload(_NUMBERS, _NUMBER, _decimal("try_mod({}, {})"), numbers.remainder),
        ),
        can_fail=True,
        is_operator=True,
        aliases=("mod",),
    ),
    Function(
        "div",
        "a div b",
        "The whole part of the quotient of two INTEGERs. Division by zero fails.",
        ("-7 div 2", -3),
        (
            overload(
                _INTEGERS,
                _INTEGER,
                # Exact, and without Spark's own div, which raises for the smallest INTEGER by -1.
                "try_cast((cast({0} as decimal(20,0)) - try_mod({0}, {1})) / nullif(cast({1} as decimal(20,0)), 0bd) "
                "as bigint)",
                numbers.integer_quotient,
            ),
        ),
        can_fail=True,
        is_operator=True,
    ),
    Function(
        "negative",
        "-a, negative(a)",
        "With the other sign.",
        ("-(2 + 3)", -5),
        (
            overload("number INTEGER", _INTEGER, "try_subtract(0l, {})", lambda number: numbers.in_range(-number)),
            overload("number NUMBER", _NUMBER, "(- {})", _negated),
        ),
        can_fail=True,
    ),
    Function(
        "abs",
        "abs(a)",
        "Without the sign.",
        ("abs(-2.5)", Decimal("2.5")),
        (
            overload(
                "number INTEGER",
                _INTEGER,
                "try_cast(abs(cast({} as decimal(20,0))) as bigint)",
                lambda number: numbers.in_range(abs(number)),
            ),
            overload("number NUMBER", _NUMBER, "abs({})", Decimal.copy_abs),
        ),
        can_fail=True,
    ),
    Function(
        "round",
        "round(a[, digits])",
        "Rounded half up to the given number of decimals, 0 to 9; 0 unless said otherwise.",
        ("round(2.345, 2)", Decimal("2.35")),
        (
            Overload(
                (
                    Parameter("number", _NUMBER),
                    Parameter("digits", _INTEGER, is_literal=True, is_optional=True, default=0),
                ),
                _NUMBER,
                _bind_round,
            ),
        ),
        can_fail=True,
    ),
    Function(
        "floor",
        "floor(a)",
        "The next whole NUMBER below.",
        ("floor(-2.5)", Decimal(-3)),
        (overload("number NUMBER", _NUMBER, _decimal("floor({})"), numbers.floored),),
        can_fail=True,
    ),
    Function(
        "ceil",
        "ceil(a)",
        "The next whole NUMBER above.",
        ("ceil(2.1)", Decimal(3)),
        (overload("number NUMBER", _NUMBER, _decimal("ceil({})"), numbers.ceiled),),
        can_fail=True,
        aliases=("ceiling",),
    ),
    Function(
        "micros",
        "micros(a)",
        "Millionths as an INTEGER, rounded half up: what money columns hold. Of a text, all digits count.",
        ("micros('0.0021')", 2100),
        (
            overload("text TEXT", _INTEGER, lambda text: _micros_sql(number_in_text_sql(text)), numbers.micros_of_text),
            overload("number NUMBER", _INTEGER, _micros_sql, numbers.micros),
        ),
        can_fail=True,
        is_sparks=False,
    ),
    Function(
        "micros_of_minor",
        "micros_of_minor(integer, currency)",
        "Millionths of an amount in the smallest unit of its currency: cents of EUR, whole yen. The currency is a code "
        "of ISO 4217 in capital letters; others fail.",
        ("micros_of_minor(1099, 'EUR')", 10_990_000),
        (overload("amount INTEGER, currency TEXT", _INTEGER, _micros_of_minor_sql, _micros_of_minor),),
        can_fail=True,
        is_sparks=False,
    ),
)
