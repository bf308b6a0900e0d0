"""Folders of input files, on a disk or in the object store, and the names of the files in them."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

OBJECTS = "s3a://"
_OBJECTS = ("s3://", OBJECTS)
_BELOW = "**"
_WILD = {"*": "[^/]*", "?": "[^/]"}


@dataclass(frozen=True)
class Folder:
    """A folder of input files.

    Attributes:
        location: its absolute path, or ``s3a://bucket/prefix``; without a slash at the end.
    """

    location: str

    @classmethod
    def of(cls, given: str | Path) -> "Folder":
        """The folder that a person means by ``given``: a path, which may be relative, or ``s3://bucket/prefix``.

        Raises:
            ValueError: it has another scheme, or no bucket.
        """
        text = str(given)
        if text.startswith(_OBJECTS):
            parts = urlsplit(text)
            if not parts.netloc or "@" in parts.netloc:
                raise ValueError(f"{text} names no bucket; give a folder, or s3://bucket/prefix")
            return cls(f"{OBJECTS}{parts.netloc}/{parts.path.strip('/')}".rstrip("/"))
        if "://" in text:
            raise ValueError(f"{text}: files are read from a folder, or from s3://bucket/prefix")
        return cls(str(Path(given).expanduser().resolve()))

    @property
    def is_local(self) -> bool:
        """Whether it lies on a disk."""
        return not self.location.startswith(OBJECTS)

    def below(self, file: str) -> str | None:
        """The path of ``file``, the location of one, below this folder; None: it lies elsewhere."""
        place = f"{self.location.rstrip('/')}/"
        return file.removeprefix(place) if file.startswith(place) else None

    def __str__(self) -> str:
        """The location."""
        return self.location


def is_hidden(below: str) -> bool:
    """Whether a file is none of the input, by its path below the folder: as Spark and Hive leave files out."""
    return any(
        part.startswith(".") or (part.startswith("_") and "=" not in part) or part.endswith("._COPYING_")
        for part in PurePosixPath(below).parts
    )


def regex_of(pattern: str, literal: Callable[[str], str] = re.escape) -> str:
    r"""The regular expression for what ``pattern`` matches.

    ``*`` and ``?`` stand for characters of one name, and ``**`` for any number of folders, none included::

        *.jsonl            a.jsonl
        **/*.gz            a.gz, 2026/03/01/a.gz
        dt=*/part-?.csv    dt=2026-03-01/part-1.csv

    Args:
        pattern: for the path of a file below its folder.
        literal: gives the expression for what stands for itself.
    """
    *folders, name = pattern.split("/")
    found = "".join("(?:[^/]+/)*" if one == _BELOW else f"{_of_name(one, literal)}/" for one in folders)
    return found + _of_name(name, literal)


def name_of(pattern: str) -> str:
    """The pattern for the name of a file, of one for its path."""
    return pattern.rpartition("/")[2]


def is_match(below: str, patterns: Iterable[str]) -> bool:
    """Whether a file is one of those that ``patterns`` mean, by its path below the folder."""
    return any(_compiled(pattern).fullmatch(below) for pattern in patterns)


@lru_cache(maxsize=1000)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(regex_of(pattern), re.DOTALL)


def _of_name(pattern: str, literal: Callable[[str], str]) -> str:
    return "".join(_WILD.get(part) or literal(part) for part in re.split(r"([*?])", pattern) if part)
