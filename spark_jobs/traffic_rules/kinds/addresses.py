"""IP addresses as text of 128 bits: those of a network have a common prefix. Exact, and without Python functions."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

_OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_IPV4 = rf"{_OCTET}(?:\.{_OCTET}){{3}}"
_HALF = r"\A(?:[0-9a-f]{1,4}(?::[0-9a-f]{1,4}){0,7})?\z"
_GROUPS, _GROUP_DIGITS = 8, 4
_TEXT, _HALVES, _SIDES, _DIGITS = "address_text", "address_halves", ("address_left", "address_right"), "address_digits"
_STEPS = (_TEXT, _HALVES, *_SIDES, _DIGITS)
IPV4_PREFIX = "0" * 80 + "1" * 16
"""The bits that an IPv4 address has before its own: it is the address ``::ffff:a.b.c.d``."""


def with_address_bits(rows: DataFrame, name: str) -> DataFrame:
    """``rows`` with the column ``bits``: the address in the column ``name`` as 128 characters 0 and 1.

    It is null if the text is not an address, or has a zone (``%eth0``).
    """
    text, digits = F.col(_TEXT), F.col(_DIGITS)
    lower = F.lower(F.col(name))
    mapped = F.when(F.rlike(lower, F.lit(rf"\A{_IPV4}\z")), F.concat(F.lit("::ffff:"), lower)).otherwise(lower)
    # Step by step: in one expression, every part that a step uses twice would be repeated.
    steps = rows.withColumn(_TEXT, mapped).withColumn(_TEXT, _without_dots(text))
    halves = steps.withColumn(_HALVES, F.split(text, "::", -1)).withColumns(_sides())
    return halves.withColumn(_DIGITS, _digits()).withColumn("bits", _bits(digits)).drop(*_STEPS)


def _without_dots(text: Column) -> Column:
    """``text`` with an IPv4 address at its end as two groups of hexadecimal digits."""
    found = rf"\A([0-9a-f:]*:)({_IPV4})\z"
    octets = F.split(F.regexp_extract(text, found, 2), r"\.")
    numbers = [F.get(octets, F.lit(place)).try_cast("int") for place in range(4)]
    groups = [F.lower(F.hex(high * 256 + low)) for high, low in (numbers[:2], numbers[2:])]
    dotless = F.concat(F.regexp_extract(text, found, 1), groups[0], F.lit(":"), groups[1])
    return F.when(F.rlike(text, F.lit(found)), dotless).otherwise(text)


def _sides() -> dict[str, Column]:
    """The groups before and after ``::``, null if empty; without ``::`` all are before it."""
    halves = [F.get(_HALVES, F.lit(0)), F.coalesce(F.get(_HALVES, F.lit(1)), F.lit(""))]
    are_groups = [F.rlike(half, F.lit(_HALF)) for half in halves]
    return {name: F.when(fit, _groups(half)) for name, fit, half in zip(_SIDES, are_groups, halves, strict=True)}


def _digits() -> Column:
    """The 32 hexadecimal digits of an address; ``::`` stands for one or more groups of zeros."""
    left, right = map(F.col, _SIDES)
    count = F.size(left) + F.size(right)
    is_short = F.size(_HALVES) == 2  # noqa: PLR2004 what stands before and behind the colons
    is_whole = (F.size(_HALVES) == 1) & (count == _GROUPS)
    are_there = left.isNotNull() & right.isNotNull()
    zeros = F.repeat(F.lit("0"), (F.lit(_GROUPS) - count) * _GROUP_DIGITS)
    digits = F.concat(_joined(left), zeros, _joined(right))
    return F.when(are_there & (is_whole | (is_short & (count < _GROUPS))), digits)


def _groups(half: Column) -> Column:
    return F.when(half == "", F.array().cast("array<string>")).otherwise(F.split(half, ":"))


def _joined(groups: Column) -> Column:
    return F.array_join(F.transform(groups, lambda group: F.lpad(group, _GROUP_DIGITS, "0")), "")


def _bits(digits: Column) -> Column:
    parts = [F.substring(digits, begin, 8) for begin in range(1, 32, 8)]
    return F.concat(*[F.lpad(F.conv(part, 16, 2), 32, "0") for part in parts])
