"""Finds phrases that read translated, and says what to write instead: a part of ``make check``.

A phrase is also found where it is split over two lines. Right uses are listed in :data:`_RIGHT`.
"""

import re
import subprocess
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]
_GAP = r"\s+(?:#:?\s+)?"
INSTEAD: dict[str, str] = {
    r"(?<!\.)(?:tells?|telling|told)": "record, report, announce, emit, say",
    r"(?:hold|holds|holding|held)(?: \S+){0,4} against": "check, compare",
    r"(?:go|goes|going|gone|went) by": "use, depend on, follow",
    r"as far as": "up to; or say who decides",
    r"there (?:is|are) none": "missing; null if it has no …",
    r"(?:that|those) there are": "existing, current",
    r"so (?:long|much|many|few)(?! (?:as|that)\b)": "this long, the given number of",
    r"anew": "again, re-",
    r"beside": "next to, besides, with",
    r"of which no(?: \S+)+? any more": "turn the sentence round: all … must have …",
    r'"""What': "begin with the noun",
}
"""By pattern, in which a space stands for any gap between words, the words to write instead."""
_RIGHT: frozenset[tuple[str, str]] = frozenset()
"""By file, phrases that are right there."""
_ELSEWHERE = ("tests/", "docs/images/", "infra/words.py", "uv.lock")


def hits(file: str, text: str, right: Collection[tuple[str, str]] = _RIGHT) -> list[str]:
    """A line for each phrase in ``text`` to write differently: ``file:line: phrase -> replacement``.

    Args:
        file: the name of the file, relative to the repository.
        text: its content.
        right: phrases that may stay, by file.
    """
    found = sorted(
        (text.count("\n", 0, match.start()) + 1, " ".join(match.group().split()), instead)
        for pattern, instead in _PATTERNS
        for match in pattern.finditer(text)
    )
    return [f"{file}:{line}: {phrase} -> {instead}" for line, phrase, instead in found if (file, phrase) not in right]


def main() -> int:
    """Prints every hit in tracked files; 1 if there are any."""
    found = [hit for file in _files() for hit in hits(file, (_ROOT / file).read_text(encoding="utf-8"))]
    sys.stdout.writelines(f"{hit}\n" for hit in found)
    return 1 if found else 0


def _files() -> Iterator[str]:
    command = ["git", "ls-files", "*.py", "*.md", "*.toml", "*.sh", "*Makefile"]
    listed = subprocess.run(command, cwd=_ROOT, check=True, capture_output=True, text=True)
    return (file for file in listed.stdout.splitlines() if not file.startswith(_ELSEWHERE))


def _compiled(pattern: str) -> re.Pattern[str]:
    start = "" if pattern.startswith('"') else r"\b"
    return re.compile(rf"{start}{pattern}\b".replace(" ", _GAP), re.IGNORECASE)


_PATTERNS = [(_compiled(pattern), instead) for pattern, instead in INSTEAD.items()]

if __name__ == "__main__":
    sys.exit(main())
