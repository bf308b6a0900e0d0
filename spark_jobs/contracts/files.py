"""The small files of a lake, wherever it lies: what adloom itself reads and writes beside Spark."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol


def json_bytes(value: dict[str, Any]) -> bytes:
    """``value`` as the JSON that people may look at too."""
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


class Files(Protocol):
    """The files below a lake's root. A reader sees all of one version of a file, never half of it."""

    def read(self, key: str) -> bytes | None:
        """What the file holds; None if there is none."""
        ...

    def write(self, key: str, data: bytes) -> None:
        """Puts ``data`` into the file, in one step."""
        ...

    def walk(self, folder: str) -> Iterator[FileInfo]:
        """Every file below ``folder``, at any depth, in no particular order; none if there is no such folder."""
        ...

    def names(self, folder: str, *, after: str = "") -> list[str]:
        """The names of the files and folders in ``folder`` itself, sorted; none if there is no such folder.

        Args:
            folder: which.
            after: only those that sort behind this are listed.
        """
        ...

    def delete(self, keys: Iterable[str]) -> None:
        """Deletes the files, and the folders that are empty then; one that is not there is no error."""
        ...

    def delete_folder(self, folder: str) -> None:
        """Deletes ``folder`` and all that is in it; a folder that is not there is no error."""
        ...
