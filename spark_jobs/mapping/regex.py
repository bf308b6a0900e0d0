r"""The regular expressions that Java and Python read alike, checked and written for each.

Allowed: characters, ``.``, classes such as ``[a-z_]`` and ``[^,]``, ``\d \w \s`` (ASCII) and their opposites, ``^`` at
the start and ``$`` at the end, groups ``(...)`` and ``(?:...)``, ``|``, and the quantifiers ``? * + {n} {n,} {n,m}``,
also lazy. What may repeat without an end is one character only: a repeated group can exhaust Java's stack on a long
text.
"""

import re
from dataclasses import dataclass

from spark_jobs.mapping.errors import RefusalError

_LINE_ENDS = "\\n\\r\\u0085\\u2028\\u2029"
_ANY = f"[^{_LINE_ENDS}]"
"""The meaning of ``.`` to Java."""
_END = f"(?:(?=(?:\\r\\n|[{_LINE_ENDS}])?\\Z)(?!(?<=\\r)\\n))"
"""The meaning of ``$`` to Java: the end, or before a last line end, of which the two characters CR LF are one."""
_CLASSES = "dDwWsS"
_CONTROLS = "ntrf"
_QUANTIFIER = re.compile(r"(?:[?*+]|\{([0-9]{1,3})(,?)([0-9]{0,3})\})(\??)")
_MAX_GROUP_REPEATS = 20
_SYNTAX = r"\.[]{}()*+?^$|"


@dataclass(frozen=True)
class Regex:
    """A regular expression that both engines read alike.

    Attributes:
        java: for Spark.
        python: for :func:`re.compile` with ``re.ASCII``.
        groups: how many there are.
        can_be_empty: whether it can match an empty text.
    """

    java: str
    python: str
    groups: int
    can_be_empty: bool

    def compiled(self) -> re.Pattern[str]:
        """For Python."""
        return re.compile(self.python, re.ASCII)


def parse_regex(text: str) -> Regex:
    """Checks ``text``.

    Raises:
        RefusalError: it is malformed, or holds what the engines read differently.
    """
    reader = _Reader(text)
    python, can_be_empty = reader.alternatives(depth=0)
    if reader.position < len(text):
        raise reader.refusal("an unmatched )")
    return Regex(text, python, reader.groups, can_be_empty)


class _Reader:
    """Reads one regular expression from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.groups = 0

    def refusal(self, what: str, remedy: str = "") -> RefusalError:
        return RefusalError(
            f"the regular expression {self.text!r} has {what} at character {self.position + 1}",
            remedy or "use only what Java and Python read alike (docs/mapping.md)",
        )

    def peek(self) -> str:
        return self.text[self.position : self.position + 1]

    def alternatives(self, depth: int) -> tuple[str, bool]:
        parts = [self.sequence(depth)]
        while self.peek() == "|":
            self.position += 1
            parts.append(self.sequence(depth))
        return "|".join(python for python, _ in parts), any(empty for _, empty in parts)

    def sequence(self, depth: int) -> tuple[str, bool]:
        parts: list[str] = []
        can_be_empty = True
        while self.peek() not in ("", "|", ")"):
            python, is_empty = self.quantified(depth)
            parts.append(python)
            can_be_empty = can_be_empty and is_empty
        return "".join(parts), can_be_empty

    def quantified(self, depth: int) -> tuple[str, bool]:
        is_anchor, is_group = self.peek() in "^$", self.peek() == "("
        python, can_be_empty = self.atom(depth)
        found = _QUANTIFIER.match(self.text, self.position)
        if not found:
            return python, can_be_empty
        if is_anchor or (is_group and can_be_empty):
            raise self.refusal("a quantifier behind something that can be empty")
        least, most = _bounds(found)
        if most is not None and most < least:
            raise self.refusal("a quantifier whose bounds are in the wrong order")
        if is_group and (most is None or most > _MAX_GROUP_REPEATS):
            raise self.refusal(
                f"a group that may repeat more than {_MAX_GROUP_REPEATS} times",
                f"repeat one character or class, or bound the group: {{0,{_MAX_GROUP_REPEATS}}}",
            )
        self.position = found.end()
        if _QUANTIFIER.match(self.text, self.position) or self.peek() == "+":
            raise self.refusal("a quantifier behind a quantifier")
        return python + found[0], can_be_empty or least == 0

    def atom(self, depth: int) -> tuple[str, bool]:
        character = self.peek()
        if character == "(":
            return self.group(depth)
        if character == "[":
            return self.character_class(), False
        if character == "\\":
            return self.escape(), False
        if character in "*+?{}]":
            raise self.refusal(f"{character!r} without a meaning", f"write \\\\{character} for the character")
        self.position += 1
        if character == "^":
            if self.position > 1 or depth:
                self.position -= 1
                raise self.refusal("^ inside", "use it at the start only")
            return "\\A", True
        if character == "$":
            if self.position < len(self.text) or depth:
                self.position -= 1
                raise self.refusal("$ inside", "use it at the end only")
            return _END, True
        return _ANY if character == "." else re.escape(character), False

    def group(self, depth: int) -> tuple[str, bool]:
        start = "(?:" if self.text.startswith("(?:", self.position) else "("
        self.position += len(start)
        if start == "(":
            if self.peek() == "?":
                raise self.refusal("a group of another kind than (...) and (?:...)")
            self.groups += 1
        python, can_be_empty = self.alternatives(depth + 1)
        if self.peek() != ")":
            raise self.refusal("a ( without its )")
        self.position += 1
        return f"{start}{python})", can_be_empty

    def escape(self) -> str:
        character = self.text[self.position + 1 : self.position + 2]
        if not character or (character.isalnum() and character not in _CLASSES + _CONTROLS) or not character.isascii():
            raise self.refusal(f"the escape \\{character}")
        self.position += 2
        return "\\" + character if character in _CLASSES + _CONTROLS else re.escape(character)

    def character_class(self) -> str:
        self.position += 1
        is_negated = self.peek() == "^"
        self.position += is_negated
        parts: list[str] = []
        while self.peek() != "]":
            parts.append(self.class_member())
        if not parts:
            raise self.refusal("an empty class")
        self.position += 1
        return f"[{'^' if is_negated else ''}{''.join(parts)}]"

    def class_member(self) -> str:
        first = self.class_character()
        if self.peek() != "-" or self.text[self.position + 1 : self.position + 2] == "]":
            return first
        self.position += 1
        last = self.class_character()
        low, high = _character(first), _character(last)
        if low is None or high is None or low > high:
            raise self.refusal("a range that is none")
        return f"{first}-{last}"

    def class_character(self) -> str:
        character = self.peek()
        if not character or character in "[^" or self.text.startswith("&&", self.position):
            raise self.refusal(f"{character or 'the end'!r} in a class", f"write \\\\{character}" if character else "")
        if character == "\\":
            return self.escape()
        self.position += 1
        return "\\-" if character == "-" else re.escape(character)


def _character(member: str) -> str | None:
    """The character that a member of a class stands for; None for a class of its own."""
    if len(member) == 1:
        return member
    return None if member[1] in _CLASSES + _CONTROLS else member[1:]


def _bounds(found: re.Match[str]) -> tuple[int, int | None]:
    sign = found[0][0]
    if sign != "{":
        return int(sign == "+"), 1 if sign == "?" else None
    if not found[2]:
        return int(found[1]), int(found[1])
    return int(found[1]), int(found[3]) if found[3] else None


def parse_like(pattern: str) -> re.Pattern[str]:
    r"""The pattern of ``like``: ``%`` any characters, ``_`` one, ``\`` before one of these or itself.

    Raises:
        RefusalError: an escape is another.
    """
    parts: list[str] = []
    position = 0
    while position < len(pattern):
        character = pattern[position]
        if character == "\\":
            position += 1
            character = pattern[position : position + 1]
            if not character or character not in "%_\\":
                raise RefusalError(f"the pattern {pattern!r} has \\ before another character than %, _ and \\")
            parts.append(re.escape(character))
        else:
            parts.append({"%": ".*", "_": "."}.get(character, re.escape(character)))
        position += 1
    return re.compile("".join(parts) + r"\Z", re.DOTALL)
