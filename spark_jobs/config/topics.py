"""Topics as settings name them: a name, or a pattern that means every topic that fits it."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeVar

ANY: Final = "*"
"""In a pattern: any characters, none too."""
_NAME: Final = re.compile(r"[a-zA-Z0-9._*-]{1,249}")
# A pattern fits a narrower one, too.
_CHARACTERS: Final = "[a-zA-Z0-9._*-]*"
_INTERNAL: Final = "__"
"""Begins the names of Kafka's own topics, which no pattern means."""

T = TypeVar("T")


def check_topic(text: str) -> None:
    """Checks that ``text`` can be the name of a topic, or a pattern.

    Raises:
        ValueError: it cannot.
    """
    if not _NAME.fullmatch(text):
        raise ValueError(
            f"topics: {text!r} is no name of a topic, which has letters, digits, '.', '_' and '-', and {ANY} for any"
        )


def is_pattern(topic: str) -> bool:
    """Whether ``topic`` may mean several."""
    return ANY in topic


def regex_of(topics: Iterable[str]) -> str:
    """The regular expression, of Python and of Java, for the whole name of every topic that ``topics`` mean."""
    return "|".join(
        f"(?!{_INTERNAL}){_CHARACTERS.join(map(re.escape, topic.split(ANY)))}"
        if is_pattern(topic)
        else re.escape(topic)
        for topic in topics
    )


def is_meant(topic: str, topics: Iterable[str]) -> bool:
    """Whether one of ``topics`` means ``topic``."""
    return re.fullmatch(regex_of(topics), topic) is not None


def meant(topics: Sequence[str], known: Iterable[str]) -> tuple[str, ...]:
    """The topics of those ``known`` that ``topics`` mean: by name in that order, then by pattern in order of name."""
    there = set(known)
    named = [topic for topic in topics if topic in there]
    patterns = [topic for topic in topics if is_pattern(topic)]
    found = sorted(topic for topic in there if is_meant(topic, patterns)) if patterns else []
    return tuple(dict.fromkeys([*named, *found]))


def value_of(topic: str | None, by_topic: Mapping[str, T]) -> T | None:
    """The value for ``topic``: by its name, or else by the first pattern that means it."""
    if topic is None:
        return None
    pattern = (one for one in by_topic if is_pattern(one) and is_meant(topic, [one]))
    return by_topic[topic] if topic in by_topic else next((by_topic[one] for one in pattern), None)
