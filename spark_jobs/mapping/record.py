"""A JSON record in Python, read as :mod:`spark_jobs.mapping.schema` reads it in Spark."""

import json
import re
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn, TypeVar

from spark_jobs.contract.record_places import META
from spark_jobs.mapping.paths import BETWEEN_ROOT, OUTER_ROOT, OUTERMOST_ROOT, Path, Step, Where

_MAX_DIGITS = 38
"""Of a decimal that Spark keeps exactly. Longer ones, and those with an exponent, stay as they are written."""
_MAX_NUMBER_LENGTH = 1000
_MAX_DEPTH = 1000
_MAX_DEPTH_OF_RECORD = _MAX_DEPTH - 1
"""Spark parses a record within an array."""
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]|[-0-9][-+.eE0-9]{1000,}', re.DOTALL)
_RARE = re.compile(r"\\u[dD][89a-fA-F]|[-+.eE0-9]{1000}")
_BRACKETS_TO_COUNT = 200
_SPACE = " \t\r\n"
_FRAMES_PER_LEVEL = 10
_SHORT_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_ESCAPES = {code: f"\\u{code:04X}" for code in range(0x20)} | str.maketrans(_SHORT_ESCAPES)

T = TypeVar("T")


class _Number(str):
    """A JSON number, as written."""

    __slots__ = ()


class _NotJsonError(ValueError):
    """Raised when a text is not JSON that Spark reads."""


def _refuse_constant(name: str) -> NoReturn:
    raise _NotJsonError(name)


_decode = json.JSONDecoder(parse_int=_Number, parse_float=_Number, parse_constant=_refuse_constant).raw_decode


class Record:
    """One JSON object.

    A text that is not JSON has no value at any path. It is parsed when the first path is asked for.

    Args:
        text: the JSON text without white space around it; bytes are UTF-8.
        outer: what lies around it, if it is an element of a list.
        meta: its metadata as JSON; of an element, that of its record counts.
        is_whole: whether a text with more behind the first value counts as none.

    Attributes:
        others: by root, the other records that paths lead into.
    """

    __slots__ = ("_is_whole", "_root", "others", "text")

    def __init__(
        self, text: bytes | str, outer: "Record | None" = None, *, meta: str = "", is_whole: bool = False
    ) -> None:
        self.text = text if isinstance(text, str) else text.decode("utf-8", errors="replace")
        self._root: object = self
        self._is_whole = is_whole
        self.others: dict[str, Record] = (
            {OUTER_ROOT: outer, BETWEEN_ROOT: outer, OUTERMOST_ROOT: outer.outermost} if outer else {}
        )
        if outer and META in outer.others:
            self.others[META] = outer.others[META]
        elif meta:
            self.others[META] = Record(meta)

    def get(self, path: Path) -> str | None:
        """The value at ``path`` as TEXT; None if it is missing, or JSON's null.

        Text as it is. A number in plain notation, without needless zeros (``1.50`` is ``1.5``); one with an exponent
        or more than 38 digits as it is written. An object or array as compact JSON with its keys in order. The whole
        record (``$``) exactly as it was received.
        """
        if path.root:
            return self.others[path.root].get(path.within) if path.root in self.others else None
        if not path.steps:
            return self.text
        return text_of(_find(self.root(), path))

    def is_text(self, path: Path) -> bool:
        """Whether the value at ``path`` is a JSON string or a number without fraction and exponent."""
        if path.root:
            return path.root in self.others and self.others[path.root].is_text(path.within)
        value = _find(self.root(), path)
        return isinstance(value, str) and not (isinstance(value, _Number) and {".", "e", "E"} & set(value))

    def elements(self, path: Path) -> "list[Record]":
        """The elements of the list at ``path``, each a record; none if there is no list."""
        found = _find(self.root(), path)
        texts = [text_of(one) for one in found] if isinstance(found, list) else []
        return [Record("null" if text is None else text, self) for text in texts]

    @property
    def outer(self) -> "Record | None":
        """The record around it."""
        return self.others.get(OUTER_ROOT)

    @property
    def outermost(self) -> "Record":
        """The record that was received."""
        return self.others.get(OUTERMOST_ROOT, self)

    def root(self) -> object:
        """The parsed text; None if it is not JSON, or nested too deeply."""
        if self._root is self:
            self._root = _parse(self.text, _MAX_DEPTH_OF_RECORD, is_whole=self._is_whole)
        return self._root


def json_value(text: str, path: Path) -> str | None:
    """The value at ``path`` in the JSON ``text``; see :meth:`Record.get`, but ``$`` is the value in compact form."""
    return text_of(_find(_parse(text), path))


def array_length(text: str) -> int | None:
    """How many elements the JSON array ``text`` has; None if it is none."""
    root = _parse(text)
    return len(root) if isinstance(root, list) else None


def array_contains(text: str, value: str) -> bool | None:
    """Whether an element of the JSON array ``text`` is ``value``; None if it is no array."""
    root = _parse(text)
    return any(_plain_text(element) == value for element in root) if isinstance(root, list) else None


def _find(value: object, path: Path) -> object:
    for step in path.steps:
        value = _below(value, step)
    return value


def _below(value: object, step: Step) -> object:
    if isinstance(step, str):
        return value.get(step) if isinstance(value, dict) else None
    if not isinstance(value, list):
        return None
    if isinstance(step, Where):
        keys = Path(step.keys)
        return next((element for element in value if _plain_text(_find(element, keys)) == step.value), None)
    return value[step] if step < len(value) else None


def _plain_text(value: object) -> str | None:
    """``value`` as TEXT, if it is a text, a boolean, or a number that Spark has exactly."""
    if isinstance(value, dict | list) or (isinstance(value, _Number) and not _is_exact(value)):
        return None
    return text_of(value)


def _parse(text: str, max_depth: int = _MAX_DEPTH, *, is_whole: bool = False) -> object:
    try:
        if text.count("[") + text.count("{") > _BRACKETS_TO_COUNT or _RARE.search(text):
            return _deeply(partial(_parse_rare, max_depth=max_depth, is_whole=is_whole), text)
        return _first(text, is_whole=is_whole)
    except ValueError:
        return None


def _first(text: str, *, is_whole: bool) -> object:
    stripped = text.strip(_SPACE)
    value, end = _decode(stripped)
    if is_whole and end < len(stripped):
        raise _NotJsonError(text)
    return value


def _deeply(function: Callable[[Any], T], value: object) -> T:
    """``function(value)``, which recurses as deeply as JSON may be nested: deeper than Python allows by default."""
    try:
        return function(value)
    except RecursionError:
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(limit + _FRAMES_PER_LEVEL * _MAX_DEPTH)
        try:
            return function(value)
        finally:
            sys.setrecursionlimit(limit)


def _parse_rare(text: str, max_depth: int, *, is_whole: bool) -> object:
    depth = 0
    for token in _TOKEN.finditer(text):
        if token[0] in "[{":
            depth += 1
            if depth > max_depth:
                return None
        elif token[0] in "]}":
            depth -= 1
        elif token[0][0] != '"' and sum(map(str.isdigit, token[0])) > _MAX_NUMBER_LENGTH:
            return None
    value = _first(text, is_whole=is_whole)
    _check_text(value)
    return value


def _check_text(value: object) -> None:
    """Raises UnicodeEncodeError, a ValueError, if half of a surrogate pair is somewhere."""
    if isinstance(value, str):
        value.encode()
    elif isinstance(value, dict):
        for key, member in value.items():
            key.encode()
            _check_text(member)
    elif isinstance(value, list):
        for member in value:
            _check_text(member)


def text_of(value: object) -> str | None:
    """A parsed JSON value as TEXT."""
    if value is None:
        return None
    if isinstance(value, str):
        return _number_text(value) if isinstance(value, _Number) else value
    return _deeply(_json, value)


def _is_exact(literal: str) -> bool:
    """Whether Spark makes a decimal of the number, and no floating point."""
    whole, _, fraction = literal.lstrip("-").partition(".")
    has_exponent = "e" in literal or "E" in literal
    return not has_exponent and len((whole + fraction).lstrip("0")) <= _MAX_DIGITS and len(fraction) <= _MAX_DIGITS


def _number_text(literal: str) -> str:
    if not _is_exact(literal):
        return str(literal)
    if not literal.strip("-0."):
        return "0"
    return literal.rstrip("0").rstrip(".") if "." in literal else str(literal)


def _json(value: object) -> str:
    """Compact JSON, its keys in the order of their UTF-16 units: what Spark makes of a variant."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, _Number):
        return _number_text(value)
    if isinstance(value, str):
        return _json_text(value)
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: key.encode("utf-16-be"))
        return "{" + ",".join(f"{_json_text(key)}:{_json(value[key])}" for key in keys) + "}"
    assert isinstance(value, list)  # noqa: S101 nothing else comes out of the parser
    return "[" + ",".join(map(_json, value)) + "]"


def _json_text(text: str) -> str:
    return '"' + text.translate(_ESCAPES) + '"'
