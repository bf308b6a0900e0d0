r"""The regular expressions that find crawlers: only syntax with one meaning in Java (Spark) and RE2 (DuckDB).

Allowed: characters, ``.``, classes such as ``[a-z_]`` and ``[\s\S]``, ``\d \w \s`` and their opposites, ``^``, ``$``,
groups ``(...)`` and ``(?:...)``, ``|``, and the quantifiers ``? * + {n} {n,} {n,m}``, also lazy. A group repeats a
bounded number of times: otherwise a long text can exhaust Java's stack. ``\s`` is the one known difference: only Java
counts the vertical tab.
"""

import re
from dataclasses import dataclass

_CLASSES = "dDwWsSnrtf"
_QUANTIFIER = re.compile(r"(?:[?*+]|\{(\d{1,3})(?:,(\d{1,3})?)?\})\??")
_MOST_REPEATS = 20
_SYNTAX = frozenset(r"\.[]{}()*+?^$|")


@dataclass(frozen=True)
class Pattern:
    """A regular expression that is searched for anywhere in a text.

    Attributes:
        text: as it was written, which is how RE2 takes it.
        java: as Java takes it, with the same meaning.
        literal: its characters if it is literal text; otherwise None.
    """

    text: str
    java: str
    literal: str | None


def parse_pattern(text: str) -> Pattern:
    """Checks ``text``.

    Raises:
        ValueError: it is malformed, has syntax that the engines read differently, or matches every text.
    """
    reader = _Reader(text)
    reader.alternatives(depth=0)
    if reader.position < len(text):
        raise reader.refusal("an unmatched )")
    try:
        if re.compile(text).search(""):
            raise ValueError(f"the pattern {text!r} fits the empty text, and so every other; make it more specific")
    except re.error as error:
        raise ValueError(f"the pattern {text!r} is no regular expression: {error.msg}") from error
    literal = "".join(reader.characters) if reader.is_literal else None
    return Pattern(text, "".join(reader.java), literal)


def any_of(patterns: tuple[Pattern, ...]) -> str:
    """One regular expression for Java that matches where one of ``patterns`` does; fast even for thousands of words."""
    words = {pattern.literal for pattern in patterns if pattern.literal is not None}
    others = [f"(?:{pattern.java})" for pattern in patterns if pattern.literal is None]
    # (?d): only \n ends a line, as for RE2.
    return "(?d)" + "|".join([*others, *([_any_word(words)] if words else [])])


def _any_word(words: set[str]) -> str:
    """A regular expression that matches any of ``words``; words with a common prefix share a branch."""
    if "" in words:
        return ""  # one word ends here and matches, so longer ones do not matter
    tails: dict[str, set[str]] = {}
    for word in words:
        tails.setdefault(word[0], set()).add(word[1:])
    branches = [_escaped(head) + _any_word(rest) for head, rest in sorted(tails.items())]
    return branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"


def _escaped(character: str) -> str:
    return f"\\{character}" if character in _SYNTAX else character


class _Reader:
    """Reads one regular expression from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.java: list[str] = []
        self.characters: list[str] = []
        self.is_literal = True

    def refusal(self, what: str) -> ValueError:
        return ValueError(
            f"the pattern {self.text!r} has {what} at character {self.position + 1}; use only what Java and RE2 read "
            "alike (docs/invalid-traffic.md)"
        )

    def peek(self, count: int = 1) -> str:
        return self.text[self.position : self.position + count]

    def take(self, count: int, java: str | None = None) -> None:
        self.java.append(self.peek(count) if java is None else java)
        self.position += count

    def alternatives(self, depth: int) -> None:
        self.sequence(depth)
        while self.peek() == "|":
            self.is_literal = False
            self.take(1)
            self.sequence(depth)

    def sequence(self, depth: int) -> None:
        while self.peek() not in ("", "|", ")"):
            first = self.peek()
            self.atom(depth)
            found = _QUANTIFIER.match(self.text, self.position)
            if found:
                self.quantifier(found, first)

    def quantifier(self, found: re.Match[str], first: str) -> None:
        self.is_literal = False
        least, most = found[1], found[2]
        is_open = found[0][0] in "*+" or ("," in found[0] and not most)
        if first in "^$":
            raise self.refusal("a quantifier behind an anchor")
        if first == "(" and (is_open or int(most or least or 1) > _MOST_REPEATS):
            raise self.refusal(f"a group that may repeat more than {_MOST_REPEATS} times")
        self.take(len(found[0]))
        if _QUANTIFIER.match(self.text, self.position):
            raise self.refusal("a quantifier behind a quantifier")

    def atom(self, depth: int) -> None:
        character = self.peek()
        if character not in _SYNTAX:
            self.characters.append(character)
            self.take(1)
        elif character == "\\":
            self.escape()
        else:
            self.is_literal = False
            self.syntax(character, depth)

    def syntax(self, character: str, depth: int) -> None:
        if character == "(":
            self.group(depth)
        elif character == "[":
            self.character_class()
        elif character == "$":
            # In Java, $ also matches before a final line end.
            self.take(1, "\\z")
        elif character in "^.":
            self.take(1)
        else:
            raise self.refusal(f"{character!r} without a meaning")

    def group(self, depth: int) -> None:
        if self.peek(2) == "(?" and self.peek(3) != "(?:":
            raise self.refusal("a group of another kind than (...) and (?:...)")
        self.take(3 if self.peek(3) == "(?:" else 1)
        self.alternatives(depth + 1)
        if self.peek() != ")":
            raise self.refusal("a ( without its )")
        self.take(1)

    def escape(self) -> None:
        character = self.peek(2)[1:]
        if not character or not character.isascii() or (character.isalnum() and character not in _CLASSES):
            raise self.refusal(f"the escape \\{character}")
        if character in _CLASSES:
            self.is_literal = False
        self.characters.append(character)
        self.take(2)

    def character_class(self) -> None:
        self.take(2 if self.peek(2) == "[^" else 1)
        if self.peek() == "]":
            raise self.refusal("an empty class")
        while self.peek() != "]":
            character = self.peek()
            if character in ("", "[") or self.peek(2) == "&&":
                raise self.refusal(f"{character or 'the end'!r} in a class")
            if character == "\\":
                self.escape()
            else:
                self.take(1)
        self.take(1)
