"""Topics as settings name them: a name, or a pattern that means every topic that fits it."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, TypeVar

from spark_jobs.config import folders

ANY: Final = "*"
"""In a pattern: any characters, none too."""
_NAME: Final = re.compile(r"[a-zA-Z0-9._*-]{1,249}")
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
            f"topics: {text!r} is no name of a topic; write letters, digits, '.', '_', '-', and {ANY} for any of them"
        )


def is_pattern(topic: str) -> bool:
    """Whether ``topic`` may mean several."""
    return ANY in topic


def regex_of(topics: Iterable[str]) -> str:
    """The regular expression, of Python and of Java, for the whole name of every topic that ``topics`` mean."""
    return "|".join(
        f"(?!{_INTERNAL}){folders.regex_of(topic)}" if is_pattern(topic) else re.escape(topic) for topic in topics
    )


def is_meant(topic: str, topics: Collection[str]) -> bool:
    """Whether one of ``topics`` means ``topic``, which may be a narrower pattern."""
    return topic in topics or (not topic.startswith(_INTERNAL) and folders.is_match(topic, filter(is_pattern, topics)))


def meant(topics: Sequence[str], known: Iterable[str]) -> tuple[str, ...]:
    """The topics of those ``known`` that ``topics`` mean: by name in that order, then by pattern in order of name."""
    there = set(known)
    fitting = sorted(topic for topic in there if is_meant(topic, topics))
    return tuple(dict.fromkeys([*(topic for topic in topics if topic in there), *fitting]))


def value_of(topic: str | None, by_topic: Mapping[str, T]) -> T | None:
    """The value for ``topic``: by its name, or else by the first pattern that means it."""
    if topic is None:
        return None
    if topic in by_topic:
        return by_topic[topic]
    return next((value for pattern, value in by_topic.items() if is_meant(topic, [pattern])), None)
