"""NUMBER and INTEGER in Python: exactly what Spark's decimals and bigints do."""

import re
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal

from spark_jobs.mapping.types import MAX_INTEGER, MIN_INTEGER, NUMBER_SCALE

# Wide enough that no operation rounds before it is asked to. Python's own operators, abs and the minus sign among them,
# round to 28 digits: nothing here may use them.
EXACT = Context(prec=200, Emax=10**6, Emin=-(10**6))
_DIGITS = r"[0-9]{1,38}"
NUMBER_PATTERN = rf"[+-]?(?:{_DIGITS}(?:\.[0-9]{{0,38}})?|\.{_DIGITS})(?:[eE][+-]?[0-9]{{1,2}})?"
"""Of a text that is a number, in the regular expressions of Java and Python alike."""
TRIMMED = "".join(map(chr, [*range(0x21), 0x7F]))
"""White space and control characters, which Spark ignores around a number or boolean."""
_NUMBER = re.compile(NUMBER_PATTERN)
_INTEGER = re.compile(r"[+-]?[0-9]+")
_LIMIT = Decimal(10) ** 21
_MILLION = Decimal(10**6)
_STEP = Decimal(1).scaleb(-NUMBER_SCALE)
_PRODUCT_STEP = Decimal(1).scaleb(-6)
_QUOTIENT_STEP = Decimal(1).scaleb(-8)
_INTEGER_DIGITS = 19


def rounded(
    value: Decimal, step: Decimal = _STEP, limit: Decimal = _LIMIT, rounding: str = ROUND_HALF_UP
) -> Decimal | None:
    """``value`` to a multiple of ``step``, as a NUMBER; None from ``limit`` on. There is no negative zero."""
    result = value.quantize(step, rounding=rounding, context=EXACT)
    if result.copy_abs() >= limit:
        return None
    return EXACT.add(result.quantize(_STEP, rounding=ROUND_HALF_UP, context=EXACT), Decimal(0))


def in_range(value: int) -> int | None:
    """``value`` if it is an INTEGER."""
    return value if MIN_INTEGER <= value <= MAX_INTEGER else None


def _parsed(text: str) -> Decimal | None:
    stripped = text.strip(TRIMMED)
    return Decimal(stripped) if _NUMBER.fullmatch(stripped) else None


def number_of_text(text: str) -> Decimal | None:
    """TEXT to NUMBER, rounded half up to 9 decimals."""
    value = _parsed(text)
    return None if value is None else rounded(value)


def decimal_cast(precision: int, scale: int, value: Decimal) -> Decimal | None:
    """NUMBER to ``decimal(precision, scale)``, rounded half up, as a NUMBER."""
    return rounded(value, Decimal(1).scaleb(-scale), Decimal(10) ** (precision - scale))


def text_to_decimal(precision: int, scale: int, text: str) -> Decimal | None:
    """TEXT to ``decimal(precision, scale)``, rounded once, as a NUMBER."""
    value = _parsed(text)
    return None if value is None else decimal_cast(precision, scale, value)


def micros(value: Decimal) -> int | None:
    """Millionths, rounded half up."""
    return in_range(int(EXACT.multiply(value.quantize(_PRODUCT_STEP, rounding=ROUND_HALF_UP, context=EXACT), _MILLION)))


def micros_of_text(text: str) -> int | None:
    """Millionths of a number in a text, rounded once."""
    value = _parsed(text)
    return None if value is None else micros(value)


def integer_of_text(text: str) -> int | None:
    """TEXT to INTEGER: digits and a sign only."""
    stripped = text.strip(TRIMMED)
    if not _INTEGER.fullmatch(stripped):
        return None
    digits = stripped.lstrip("+-").lstrip("0")
    if len(digits) > _INTEGER_DIGITS:
        return None
    return in_range(-int(digits or "0") if stripped.startswith("-") else int(digits or "0"))


def text_of_number(value: Decimal) -> str:
    """NUMBER to TEXT: plain notation without needless zeros."""
    return f"{value:f}".rstrip("0").rstrip(".")


def widened(value: int) -> Decimal:
    """INTEGER to NUMBER."""
    return Decimal(value).quantize(_STEP, context=EXACT)


def truncated(value: Decimal) -> int | None:
    """NUMBER to INTEGER: digits behind the point are cut off."""
    return in_range(int(value))


def plus(left: Decimal, right: Decimal) -> Decimal | None:
    """Exact."""
    return rounded(EXACT.add(left, right))


def minus(left: Decimal, right: Decimal) -> Decimal | None:
    """Exact."""
    return rounded(EXACT.subtract(left, right))


def times(left: Decimal, right: Decimal) -> Decimal | None:
    """Rounded half up to 6 decimals."""
    return rounded(EXACT.multiply(left, right), _PRODUCT_STEP)


def divided(left: Decimal, right: Decimal) -> Decimal | None:
    """Rounded half up to 8 decimals, of 38 that Spark computes and rounds half up first."""
    if not right:
        return None
    scaled = abs(int(left.scaleb(NUMBER_SCALE, EXACT))) * 10**38
    divisor = abs(int(right.scaleb(NUMBER_SCALE, EXACT)))
    quotient = Decimal((2 * scaled + divisor) // (2 * divisor)).scaleb(-38, EXACT)
    return rounded(quotient.copy_negate() if (left < 0) != (right < 0) else quotient, _QUOTIENT_STEP)


def remainder(left: Decimal, right: Decimal) -> Decimal | None:
    """With the sign of ``left``."""
    return rounded(EXACT.remainder(left, right)) if right else None


def integer_quotient(left: int, right: int) -> int | None:
    """Towards zero."""
    if not right:
        return None
    quotient = abs(left) // abs(right)
    return in_range(quotient if (left < 0) == (right < 0) else -quotient)


def integer_remainder(left: int, right: int) -> int | None:
    """With the sign of ``left``."""
    if not right:
        return None
    return abs(left) % abs(right) * (-1 if left < 0 else 1)


def floored(value: Decimal) -> Decimal | None:
    """Towards minus infinity."""
    return rounded(value, Decimal(1), rounding=ROUND_FLOOR)


def ceiled(value: Decimal) -> Decimal | None:
    """Towards plus infinity."""
    return rounded(value, Decimal(1), rounding=ROUND_CEILING)


def whole_product(left: Decimal, right: Decimal) -> int:
    """The product; digits behind the point are cut off."""
    return int(EXACT.multiply(left, right).quantize(Decimal(1), rounding=ROUND_DOWN, context=EXACT))


def number_of_literal(source: str) -> Decimal | None:
    """A NUMBER as it stands in an expression; None if it is not exactly one."""
    value = Decimal(source)
    number = rounded(value)
    return number if number == value else None
