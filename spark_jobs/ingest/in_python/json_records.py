"""JSON text of a record, read as strictly as Spark reads it (:mod:`spark_jobs.ingest.parse`)."""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

from spark_jobs.contract import events

_PAIR = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")
_LONE = re.compile(r"\\u[dD][89a-fA-F]")
_SHALLOW, _DEEPEST = 100, 1000
"""Brackets in a text that is surely not too deep; the depth that Spark's parser allows."""
_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)


class NotReadError(Exception):
    """Raised with the verdict on a record that is not one JSON object."""

    def __init__(self, verdict: str) -> None:
        super().__init__(verdict)
        self.verdict = verdict


class Integer(str):
    """A JSON number without fraction and exponent, as written."""

    __slots__ = ()

    @property
    def text(self) -> str:
        """Its digits; Spark writes no negative zero."""
        return "0" if self == "-0" else str(self)


class Fraction(str):
    """Any other JSON number, as written."""

    __slots__ = ()


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def root_of(text: str) -> Mapping[str, Any]:
    """The JSON object that ``text`` is.

    Raises:
        NotReadError: it is something else.
    """
    pairs: list[tuple[str, Any]] = []

    def note(found: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal pairs
        pairs = found  # the root comes last
        return dict(found)

    decoder = json.JSONDecoder(
        object_pairs_hook=note, parse_int=Integer, parse_float=Fraction, parse_constant=_refuse_constant
    )
    try:
        with _recursing(_depth(text)):
            root = decoder.decode(text)
    except ValueError:
        raise NotReadError(events.MALFORMED_JSON) from None
    if not isinstance(root, dict):
        raise NotReadError(events.NOT_AN_OBJECT)
    if len(pairs) != len(root):
        raise NotReadError(events.DUPLICATE_KEY)
    return root


def text_of(value: object) -> str:
    """A part of what :func:`root_of` returns, as JSON text."""
    with _recursing(_DEEPEST):
        return json.dumps(value)


def _depth(text: str) -> int:
    """How deep ``text`` is nested, 0 if not deep; raises ValueError if Spark does not read it for that."""
    depth = deepest = 0
    if text.count("[") + text.count("{") > _SHALLOW:
        for token in _BRACKET.finditer(text):
            depth += token[0] in "[{"
            depth -= token[0] in "]}"
            deepest = max(deepest, depth)
    if deepest > _DEEPEST:
        raise ValueError("too deep")
    return deepest


@contextmanager
def _recursing(depth: int) -> Iterator[None]:
    """Lets Python's JSON module read and write values nested as deep as ``depth``."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(before + 4 * depth)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def is_utf8(raw: bytes) -> bool:
    """Whether ``raw`` is UTF-8."""
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def has_lone_surrogate(text: str) -> bool:
    r"""Whether there is an escape such as \ud800 without its other half: it is no character and cannot be stored."""
    return "\\u" in text and bool(_LONE.search(_PAIR.sub("", text.replace("\\\\", ""))))
