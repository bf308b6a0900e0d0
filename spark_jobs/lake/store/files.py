"""The interface to a lake's small files, which adloom itself reads and writes, in any store."""

import json
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePath
from typing import Any, Protocol
from urllib.parse import quote

LOCAL = "file://"
_UNESCAPED = "/,;:$&+=@-_.!~'()*"
_SPACES_AND_CONTROLS = ("Zs", "Zl", "Zp", "Cc")
"""Categories of Unicode that Java escapes in URIs beyond ASCII."""


def hadoop_uri(path: PurePath) -> str:
    """The absolute ``path`` as a URI for Hadoop: nothing is escaped, so ``%20`` would be three characters."""
    return f"{LOCAL}{path}"


def escaped(path: str) -> str:
    """``path`` as Hadoop escapes it where it writes a URI: letters beyond ASCII and ``+`` stay, unlike in Python."""
    return "".join(one if _stays(one) else quote(one, safe=_UNESCAPED) for one in path)


def _stays(character: str) -> bool:
    return not character.isascii() and unicodedata.category(character) not in _SPACES_AND_CONTROLS


def json_bytes(value: dict[str, Any]) -> bytes:
    """``value`` as indented JSON."""
    return (json.dumps(value, indent=2) + "\n").encode()


@dataclass(frozen=True)
class FileInfo:
    """A file; ``key`` is its path below the lake's root, with ``/`` between its parts."""

    key: str
    bytes: int
    modified_at: datetime

    @property
    def name(self) -> str:
        """The last part of its key."""
        return self.key.rpartition("/")[2]


@dataclass(frozen=True)
class StoreKeys:
    """The keys of an object store, where neither the environment nor a profile has them."""

    access_key: str
    secret_key: str = field(repr=False)
    session_token: str = field(default="", repr=False)
    """Belongs to keys that expire."""


class Files(Protocol):
    """The files below a lake's root. Writes are atomic: a reader sees a whole version of a file."""

    def read(self, key: str) -> bytes | None:
        """The file's content; None if there is no such file."""
        ...

    def write(self, key: str, data: bytes) -> None:
        """Writes ``data`` to the file, atomically."""
        ...

    def create(self, key: str, data: bytes) -> bool:
        """Writes ``data`` to the file if it does not exist, atomically; whether it did."""
        ...

    def walk(self, folder: str) -> Iterator[FileInfo]:
        """Every file below ``folder``, at any depth, in no particular order; nothing if there is no such folder."""
        ...

    def names(self, folder: str, *, after: str = "") -> list[str]:
        """The sorted names of the files and folders in ``folder`` itself; empty if there is no such folder.

        Args:
            folder: its key.
            after: list only names that sort after this one.
        """
        ...

    def delete(self, keys: Iterable[str]) -> None:
        """Deletes the files, and the folders that this leaves empty; ignores missing files."""
        ...

    def delete_folder(self, folder: str) -> None:
        """Deletes ``folder`` and its content; ignores a missing folder."""
        ...
