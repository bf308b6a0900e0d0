"""The labels of generated events: which of them a bot made."""

import os
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final, Self

LABELS: Final = "_labels/labels.jsonl"
"""Where the labels lie below the folder of the events. Nothing that reads events looks into a folder that begins so."""


class LabelFile:
    """A context manager that writes labels next to the events in ``folder``; the file appears once it is complete.

    It gets the modification time ``mtime``, in seconds since 1970. After an error nothing is left of it.
    """

    def __init__(self, folder: Path, mtime: int) -> None:
        self.path = folder / LABELS
        self._temporary = self.path.with_name(f".{self.path.name}.tmp")
        self._mtime = mtime
        self._open_file = ExitStack()
        self._sink: BinaryIO | None = None

    def __enter__(self) -> Self:
        """Creates the folder."""
        self.path.parent.mkdir(exist_ok=True)
        self._sink = self._open_file.enter_context(self._temporary.open("wb"))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Completes the file, or removes it after an error."""
        try:
            self._open_file.close()
            if error is None:
                os.utime(self._temporary, (self._mtime, self._mtime))
                self._temporary.rename(self.path)
        finally:
            self._temporary.unlink(missing_ok=True)

    def write(self, line: bytes) -> None:
        """Adds a label, line end included."""
        assert self._sink is not None, "it is entered"  # noqa: S101
        self._sink.write(line)
