"""Paths into a record: ``$.user.device['odd key'].tags[0]``, ``$.params[?key='page'].value``."""

import re
from dataclasses import dataclass
from typing import Self

from spark_jobs.mapping.errors import MappingError

OUTER_ROOT, OUTERMOST_ROOT = "$", "$$"
"""The roots of paths into what lies around an element, ``$$.sent``; in a list within a list also into the record around
both, ``$$$.sent``."""
BETWEEN_ROOT = f"between.{OUTER_ROOT}"
"""The root of paths into what lies around an element of a list within a list, which is an element itself."""
EVERY = "[*]"
"""In the path of a list: of each element of the list before it."""
PLACEHOLDER = "\ue000"
"""Stands for each character of a path while the rest is parsed: a letter to the parser, and none of the user's."""

_MAX_INDEX = 999_999
_ROOT = re.compile(r"\$\$?|[a-z][a-z0-9_]*")
_NAME = re.compile(r"\.([^\W\d]\w*)")
_KEY = re.compile(r"""\[\s*(?:'([^'\\]*)'|"([^"\\]*)")\s*\]""")
_INDEX = re.compile(r"\[\s*([0-9]+)\s*\]")
_WHERE = re.compile(r"""\[\s*\?\s*([^\W\d]\w*(?:\.[^\W\d]\w*)*)\s*=\s*(?:'([^'\\]*)'|"([^"\\]*)")\s*\]""")
_SKIPPED = re.compile(
    r"""[rR]?'(?:[^'\\]|\\.)*'|[rR]?"(?:[^"\\]|\\.)*"|`[^`]*`|--[^\n]*|/\*.*?\*/|[$""" + PLACEHOLDER + "]", re.DOTALL
)


@dataclass(frozen=True)
class Where:
    """A step to the first element of a list that has a text or plain number at some keys.

    Attributes:
        keys: from the element on.
        value: the text that is there.
    """

    keys: tuple[str, ...]
    value: str


Step = str | int | Where


@dataclass(frozen=True)
class Path:
    """Where a value lies in a record: keys (str), indexes (int, from 0), lookups. No steps: the whole record.

    Attributes:
        steps: from the root.
        root: of what: nothing for the record, :data:`OUTER_ROOT`, :data:`OUTERMOST_ROOT` or :data:`BETWEEN_ROOT` for
            what lies around an element of its list, :data:`spark_jobs.contract.record_places.META`, or the name of a
            text that the mapping reads as JSON, after the name of its source and a dot.
    """

    steps: tuple[Step, ...]
    root: str = ""

    @property
    def within(self) -> "Path":
        """The same from the root of its record."""
        return Path(self.steps)

    def __str__(self) -> str:
        """As it is written in an expression."""
        return f"${self.root.rpartition('.')[2]}" + "".join(map(_step_text, self.steps))


@dataclass(frozen=True)
class ListPath:
    """Where the elements of a list lie that are records: ``$.events``, ``$.seatbid[*].bid``.

    Attributes:
        levels: the path of the list in a record; then, in each of its elements, the path of a list; and so on.
    """

    levels: tuple[Path, ...]

    @classmethod
    def over(cls, path: Path) -> Self:
        """The list at ``path``, in each element of the lists on the way there, where the path names one by number."""
        levels, steps = list[Path](), list[Step]()
        for step in path.steps:
            if isinstance(step, int):
                levels.append(Path(tuple(steps)))
                steps = []
            else:
                steps.append(step)
        return cls((*levels, Path(tuple(steps))))

    def __str__(self) -> str:
        """As it is written in the settings."""
        return EVERY.join(str(path)[number > 0 :] for number, path in enumerate(self.levels))


def _step_text(step: Step) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    if isinstance(step, Where):
        return f"[?{'.'.join(step.keys)}='{step.value}']"
    return f".{step}" if _NAME.fullmatch(f".{step}") else f"['{step}']"


def cut_paths(text: str) -> tuple[str, dict[int, Path]]:
    """``text`` with :data:`PLACEHOLDER` for every character of a path, and the paths by where they start.

    What looks like a path within a literal, a quoted name or a comment is none.

    Raises:
        MappingError: a path is malformed.
    """
    parts: list[str] = []
    paths: dict[int, Path] = {}
    position = 0
    while found := _SKIPPED.search(text, position):
        start, end = found.span()
        parts.append(text[position:start])
        if found[0] == PLACEHOLDER:
            raise MappingError(text, start, "U+E000 is no character of the language")
        if found[0] == "$":
            paths[start], end = _read_path(text, start)
            if not paths[start].root and not isinstance(next(iter(paths[start].steps), ""), str):
                raise MappingError(text, start + 1, "a record is an object, not an array", "start with a key: $.key")
            parts.append(PLACEHOLDER * (end - start))
        else:
            parts.append(found[0])
        position = end
    return "".join([*parts, text[position:]]), paths


def parse_path(text: str) -> Path:
    """The path that ``text`` is, as in ``get_json_object``; the root may be an array.

    Raises:
        MappingError: it is none.
    """
    if not text.startswith("$"):
        raise MappingError(text, 0, f"{text!r} is no path", "a path starts with $, as in '$.key[0]'")
    path, end = _read_path(text, 0)
    if end != len(text):
        raise MappingError(text, end, f"{text[end:]!r} is no step of a path")
    return path


def parse_list(text: str) -> ListPath:
    """The path of a list that ``text`` is.

    Raises:
        MappingError: it is none.
    """
    if not text.startswith("$"):
        raise MappingError(text, 0, f"{text!r} is no path", "a path starts with $, as in $.events")
    path, end = _read_path(text, 0, EVERY)
    levels = [path]
    while text.startswith(EVERY, end) and end + len(EVERY) < len(text):
        steps, end = _read_steps(text, end + len(EVERY), EVERY)
        levels.append(Path(steps))
    if text[end:] not in ("", EVERY):
        raise MappingError(text, end, f"{text[end:]!r} is no step of a path")
    return ListPath(tuple(levels))


def _read_path(text: str, start: int, stop: str | None = None) -> tuple[Path, int]:
    root = found[0] if (found := _ROOT.match(text, start + 1)) else ""
    steps, position = _read_steps(text, start + 1 + len(root), stop)
    if position < len(text) and (text[position].isalnum() or text[position] in "_$"):
        raise MappingError(text, position, f"{text[position]!r} cannot follow $", "a field is written $.name")
    return Path(steps, root), position


def _read_steps(text: str, position: int, stop: str | None = None) -> tuple[tuple[Step, ...], int]:
    steps: list[Step] = []
    while position < len(text) and text[position] in ".[" and not (stop and text.startswith(stop, position)):
        step, position = _read_step(text, position)
        steps.append(step)
    return tuple(steps), position


def _read_step(text: str, position: int) -> tuple[Step, int]:
    if name := _NAME.match(text, position):
        return name[1], name.end()
    if key := _KEY.match(text, position):
        text_of_key = key[1] if key[1] is not None else key[2]
        if not text_of_key or {"'", '"'} & set(text_of_key) or not text_of_key.isprintable():
            raise MappingError(
                text, position, "a key in a path must not be empty or hold quotes or unprintable characters"
            )
        return text_of_key, key.end()
    if where := _WHERE.match(text, position):
        value = where[2] if where[2] is not None else where[3]
        if {"'", '"'} & set(value) or not value.isprintable():
            raise MappingError(text, position, "a value in a path must not hold quotes or unprintable characters")
        return Where(tuple(where[1].split(".")), value), where.end()
    index = _INDEX.match(text, position)
    if index and len(index[1]) <= len(str(_MAX_INDEX)):
        return int(index[1]), index.end()
    if index:
        raise MappingError(text, position, f"the index {index[1]} is larger than {_MAX_INDEX}")
    if text.startswith(("[-", "[*", ".*", ".."), position):
        raise MappingError(
            text,
            position,
            "a path has no wildcards and no indexes from the end",
            "name one element: [0], or [?key='value']",
        )
    raise MappingError(
        text, position, "a step of a path is malformed", "write .name, ['any key'], [0] or [?key='value']"
    )
