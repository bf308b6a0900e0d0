"""RFC 8259 to the letter, and what the event contract asks of it beyond: see ``parse``."""

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NoReturn

MAX_DEPTH = 1000
"""The deepest nesting that counts as JSON; the root value is level 1."""

_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|.)", re.DOTALL)


class NotJsonError(ValueError):
    """Raised when a text is not JSON."""


@dataclass(frozen=True)
class Integer:
    """A JSON number without fraction and exponent, its digits as written."""

    text: str


@dataclass(frozen=True)
class OtherNumber:
    """A JSON number with a fraction or an exponent."""


@dataclass(frozen=True)
class Object:
    """A JSON object: its members in order, repeated keys included."""

    members: tuple[tuple[str, object], ...]


def parse(text: str) -> object:
    """The value of ``text``: str, bool, None, list, ``Integer``, ``OtherNumber`` or ``Object``.

    Raises:
        NotJsonError: ``text`` is not JSON, or is nested deeper than ``MAX_DEPTH``.
    """
    if _depth(text) > MAX_DEPTH:
        raise NotJsonError(f"nested deeper than {MAX_DEPTH} levels")
    try:
        with _deep_recursion():
            return json.loads(
                text,
                object_pairs_hook=lambda members: Object(tuple(members)),
                parse_int=Integer,
                parse_float=lambda _: OtherNumber(),
                parse_constant=_refuse_constant,
            )
    except ValueError as error:
        raise NotJsonError(str(error)) from error


def has_unpaired_surrogate(text: str) -> bool:
    r"""Whether ``text`` holds an escape such as ``\ud800`` without its other half right behind or before it."""
    awaiting_low_at = None
    for escape in _ESCAPE.finditer(text):
        unit = int(escape[1], 16) if escape[1] else 0
        is_low = 0xDC00 <= unit <= 0xDFFF
        paired = is_low and awaiting_low_at == escape.start()
        if (is_low or awaiting_low_at is not None) and not paired:
            return True
        awaiting_low_at = escape.end() if 0xD800 <= unit <= 0xDBFF else None
    return awaiting_low_at is not None


def _depth(text: str) -> int:
    """Deepest bracket nesting outside strings; right for every text that is JSON."""
    depth = deepest = 0
    for token in _STRING_OR_BRACKET.finditer(text):
        if token[0] in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif token[0] in "]}":
            depth -= 1
    return deepest


def _refuse_constant(name: str) -> NoReturn:
    raise NotJsonError(f"{name} is not JSON")


@contextmanager
def _deep_recursion() -> Iterator[None]:
    # The standard parser recurses twice a level; its default limit would refuse some of what the contract allows.
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(limit + 10 * MAX_DEPTH)
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)
