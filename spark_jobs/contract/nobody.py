"""User ids that mean that no user is known: one of them stands for thousands of people.

Taken for a person, such an id has a session without end, and its conversions are credited to the ads of strangers.
"""

import re
from collections.abc import Iterable
from typing import Final

NOBODY: Final = (
    "00000000-0000-0000-0000-000000000000",
    *("0", "-", "null", "none", "nil", "undefined", "nan"),
    *("n/a", "(not set)", "unknown", "anonymous"),
    *("${*}", "{{*}}", "%%*%%", "[*]", "__*__"),
)
"""Those that can be no person's id: the advertising id of a device without consent (IDFA, GAID); what logs, databases
and languages write for no value, and the 0 of an id that was never set; what analytics services and shops call a
visitor whom they do not know; and macros that an ad server left as they were."""
_ANY: Final = r"[\s\S]*"
ANY: Final = "*"
"""Stands for any characters in an id."""


def pattern_of(texts: Iterable[str]) -> str:
    """A regular expression that matches each of ``texts``, whatever the case of its ASCII letters; not anchored.

    ``*`` in a text stands for any characters. It means the same to Java and, with ``re.ASCII``, to Python.
    """
    return f"(?i:{'|'.join(re.escape(text).replace(re.escape(ANY), _ANY) for text in texts)})"


class Nobody:
    """The ids that mean nobody."""

    def __init__(self, texts: Iterable[str] = NOBODY) -> None:
        texts = tuple(texts)
        self._pattern = re.compile(pattern_of(texts), re.ASCII) if texts else None

    def is_meant_by(self, user: object) -> bool:
        """Whether ``user`` is one of them."""
        return isinstance(user, str) and self._pattern is not None and self._pattern.fullmatch(user) is not None
