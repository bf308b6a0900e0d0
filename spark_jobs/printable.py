"""Text of records for people."""

import re

_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters but the tab and the line feed, and those that change the direction of what follows."""


def printable(text: str) -> str:
    """``text`` without what a terminal would obey or hide, each such character replaced by U+FFFD.

    An escape sequence in a record can rewrite what is on the screen, or make the terminal type commands.
    """
    return _UNSEEN.sub("\N{REPLACEMENT CHARACTER}", text)
