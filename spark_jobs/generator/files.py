"""Writes lines to files of equal length; each file appears only once it is complete."""

import gzip
import os
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from spark_jobs.errors import SettingsError
from spark_jobs.generator.labels import LABELS

_GZIP_LEVEL = 5

_Sink = BinaryIO | gzip.GzipFile


class EventFiles:
    """A context manager that writes ``total`` lines to ``events-00000.jsonl`` and so on in ``folder``.

    File number k gets the modification time ``first_mtime`` + k, in seconds since 1970, so readers that sort files by
    it see them in order of arrival. ``written`` lists the files in that order; ``bytes`` is their size on disk. There
    are never more files than lines. After an error the incomplete file is removed.

    Raises:
        SettingsError: ``folder`` cannot be created or already contains events.
    """

    def __init__(self, folder: Path, total: int, files: int, first_mtime: int, *, compress: bool) -> None:
        self.written: list[Path] = []
        self.bytes = 0
        self._folder = folder
        self._suffix = ".jsonl.gz" if compress else ".jsonl"
        self._first_mtime = first_mtime
        self._sizes = _shares(total, min(files, total))
        self._left = 0
        self._open_file = ExitStack()
        self._sink: _Sink | None = None
        _prepare(folder)

    def __enter__(self) -> Self:
        """Opens nothing yet: files are opened as lines arrive."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes and removes the incomplete file, if an error left one."""
        if self._sink is not None:
            try:
                self._open_file.close()
            finally:
                self._temporary.unlink(missing_ok=True)

    def write(self, lines: list[bytes]) -> None:
        """Writes ``lines``, which include their line ends."""
        position = 0
        while position < len(lines):
            sink = self._sink or self._begin()
            part = lines[position : position + self._left]
            sink.write(b"".join(part))
            position += len(part)
            self._left -= len(part)
            if not self._left:
                self._finish()

    @property
    def _target(self) -> Path:
        return self._folder / f"events-{len(self.written):05d}{self._suffix}"

    @property
    def _temporary(self) -> Path:
        return self._target.with_name(f".{self._target.name}.tmp")

    def _begin(self) -> _Sink:
        self._left = self._sizes[len(self.written)]
        file = self._open_file.enter_context(self._temporary.open("wb"))
        sink: _Sink = file
        if self._suffix.endswith(".gz"):
            # No name and no time in the header: equal specs must give equal bytes.
            sink = self._open_file.enter_context(
                gzip.GzipFile(filename="", mode="wb", compresslevel=_GZIP_LEVEL, fileobj=file, mtime=0)
            )
        self._sink = sink
        return sink

    def _finish(self) -> None:
        self._open_file.close()
        temporary, target = self._temporary, self._target
        mtime = self._first_mtime + len(self.written)
        os.utime(temporary, (mtime, mtime))
        self.bytes += temporary.stat().st_size
        temporary.rename(target)
        self._sink = None
        self.written.append(target)


def _shares(total: int, files: int) -> list[int]:
    edges = [total * number // files for number in range(files + 1)]
    return [high - low for low, high in pairwise(edges)]


def _prepare(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        found = sorted(path.name for pattern in ("*.jsonl", "*.jsonl.gz", LABELS) for path in folder.glob(pattern))
    except OSError as error:
        raise SettingsError(f"{folder} cannot be used for events: {error.strerror}; choose another folder") from error
    if found:
        more = f" and {len(found) - 1} more" if len(found) > 1 else ""
        raise SettingsError(
            f"{folder} already contains {found[0]}{more}: two sets of events would be read as one; "
            "choose an empty folder or remove them"
        )
