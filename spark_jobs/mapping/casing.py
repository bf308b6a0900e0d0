"""Upper and lower case, letter by letter, alike in every version of Java and Python.

Java and Python know different versions of Unicode, and ``upper`` may give more letters than it gets. So both engines
use this table: the letters of Unicode 3.2, which Python keeps unchanged, that have exactly one counterpart.
"""

import unicodedata
from functools import cache

_END = 0x11000
"""Behind the last letter of Unicode 3.2 that has a case."""


@cache
def case_pairs(*, to_upper: bool) -> tuple[str, str]:
    """The letters that change, and what each changes to."""
    pairs = [pair for pair in map(_upper if to_upper else _lower, map(chr, range(_END))) if pair]
    return "".join(old for old, _ in pairs), "".join(new for _, new in pairs)


@cache
def case_table(*, to_upper: bool) -> dict[int, int]:
    """The same for ``str.translate``."""
    return str.maketrans(*case_pairs(to_upper=to_upper))


def _upper(character: str) -> tuple[str, str] | None:
    return _pair(character, character.upper())


def _lower(character: str) -> tuple[str, str] | None:
    return _pair(character, character.lower())


def _pair(old: str, new: str) -> tuple[str, str] | None:
    if new == old or len(new) != 1 or not (_is_old(old) and _is_old(new)):
        return None
    return old, new


def _is_old(character: str) -> bool:
    return unicodedata.ucd_3_2_0.category(character) != "Cn"
