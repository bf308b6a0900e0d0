"""The files of input: found in the folders of the sources, and opened, on a disk or in the object store."""

import errno
import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, Literal, NamedTuple

from spark_jobs.config.folders import OBJECTS, Folder, is_hidden, name_of
from spark_jobs.config.sections import S3Settings
from spark_jobs.config.settings import Settings
from spark_jobs.errors import SourceError
from spark_jobs.formats.files import FileReader
from spark_jobs.formats.input_file import InputFile
from spark_jobs.formats.sources import FileSet, file_sets, set_of
from spark_jobs.lake.store.files import LOCAL, escaped

if TYPE_CHECKING:
    from pyarrow.fs import FileInfo, S3FileSystem

_OF_PATTERNS: Final = "{}[]*?,\\"
_BUFFER: Final = 1024 * 1024
_GONE: Final = (FileNotFoundError, PermissionError, IsADirectoryError)


class FoundFile(NamedTuple):
    """A file of input.

    Attributes:
        location: a path, or ``s3a://bucket/key``.
        modified_ns: when it was modified, in ns since 1970.
        bytes: its size.
        of: the set that it belongs to.
    """

    location: str
    modified_ns: int
    bytes: int
    of: FileSet

    @property
    def name(self) -> str:
        """The last part of its location."""
        return self.location.rpartition("/")[2]


@dataclass(frozen=True)
class StoredFile:
    """An object in the store, as a file that can be opened.

    Attributes:
        location: ``s3a://bucket/key``.
        s3: the store.
    """

    location: str
    s3: S3Settings

    @property
    def name(self) -> str:
        """See :class:`InputFile`."""
        return self.location.rpartition("/")[2]

    def open(self, mode: Literal["rb"] = "rb") -> BinaryIO:  # noqa: ARG002 there is one
        """See :class:`InputFile`."""
        return io.BufferedReader(_Stored(self.location, self.s3), _BUFFER)


def place_of(location: str, reader: FileReader) -> str:
    """How the ``source`` of the records of the file at ``location`` begins."""
    if location.startswith(OBJECTS):
        return location
    # Of JSON, bronze has always had the URI of the file.
    return f"{LOCAL}{escaped(location) if reader.encoding.format.is_json else location}"


def input_file(location: str, s3: S3Settings) -> InputFile:
    """The file at ``location``, that of a :class:`FoundFile`."""
    return StoredFile(location, s3) if location.startswith(OBJECTS) else Path(location)


def folders_of(settings: Settings, source: str | Path | None) -> tuple[Folder, ...]:
    """The folders to read: ``source``, or else those of the sources in the settings; none: Kafka is read.

    Raises:
        SourceError: ``source`` is neither a folder nor a place in the object store.
    """
    if not source:
        return settings.folders
    try:
        return (Folder.of(source),)
    except ValueError as error:
        raise SourceError(str(error)) from error


def sets_of(settings: Settings, source: str | Path | None) -> tuple[FileSet, ...]:
    """The sets of files to read, and how; of a file that several have, the first counts.

    Raises:
        SourceError: see :func:`folders_of`.
        SettingsError: a schema file cannot be read.
    """
    folders = folders_of(settings, source)
    return file_sets(settings, folders[0] if source else None) if folders else ()


def files_of(settings: Settings, source: str | Path | None) -> list[FoundFile]:
    """The files that are there now, by modification time, then location, for each folder.

    Raises:
        SourceError: a folder does not exist or has no such files, or Spark cannot read it because of its name.
    """
    return find_files(sets_of(settings, source), settings.s3)


def find_files(sets: Sequence[FileSet], s3: S3Settings) -> list[FoundFile]:
    """The files of ``sets``, as :func:`files_of` gives them.

    Raises:
        SourceError: a folder does not exist or has no such files, or Spark cannot read it because of its name.
    """
    folders = dict.fromkeys(one.folder for one in sets)
    return [file for folder in folders for file in _of_folder(folder, [s for s in sets if s.folder == folder], s3)]


def names_of(sets: Iterable[FileSet]) -> list[str]:
    """The patterns for the names of the files in ``sets``, without their folders."""
    return sorted({name_of(pattern) for one in sets for pattern in one.patterns})


def read_records(folder: Path) -> Iterator[bytes]:
    """The values of the files of JSON in ``folder``, in the order of :func:`files_of`.

    Raises:
        SourceError: see :func:`files_of`.
    """
    for file in files_of(Settings(), folder):
        for row in file.of.reader.rows(Path(file.location)):
            yield row.raw


def cannot_be_opened(location: str, error: OSError) -> bool:
    """Whether ``error`` is of this one file, and not of the disk or store that it lies on."""
    if location.startswith(OBJECTS):
        return isinstance(error, FileNotFoundError)
    folder = Path(location).parent
    with suppress(OSError):
        # An empty folder may be a disk that is away.
        return isinstance(error, _GONE) and any(folder.iterdir())
    return False


def _of_folder(folder: Folder, sets: Sequence[FileSet], s3: S3Settings) -> list[FoundFile]:
    if found := [character for character in _OF_PATTERNS if character in folder.location]:
        raise SourceError(f"source {folder}: Spark would take {found[0]} for a part of a pattern; rename the folder")
    is_deep = any("/" in pattern for one in sets for pattern in one.patterns)
    there = _on_disk(folder, is_deep=is_deep) if folder.is_local else _in_store(folder, s3, is_deep=is_deep)
    files = []
    for location, modified_ns, size in there:
        of = set_of(sets, location)
        if of and not is_hidden(folder.below(location) or ""):
            files.append(FoundFile(location, modified_ns, size, of))
    if not files:
        names = ", ".join(dict.fromkeys(pattern for one in sets for pattern in one.patterns))
        raise SourceError(f"source {folder} has no file named {names}; give the folder of the events")
    return sorted(files, key=lambda file: (file.modified_ns, file.location))


def _on_disk(folder: Folder, *, is_deep: bool) -> Iterator[tuple[str, int, int]]:
    place = Path(folder.location)
    if not place.is_dir():
        raise SourceError(f"source {folder} is not a folder; give the folder with the files of the events")
    for file in place.rglob("*") if is_deep else place.iterdir():
        with suppress(FileNotFoundError):  # somebody moves it away
            if file.is_file():
                found = file.stat()
                yield str(file), found.st_mtime_ns, found.st_size


def _in_store(folder: Folder, s3: S3Settings, *, is_deep: bool) -> Iterator[tuple[str, int, int]]:
    from pyarrow.fs import FileSelector, FileType  # noqa: PLC0415 only for such folders

    place = folder.location.removeprefix(OBJECTS)
    try:
        found: list[FileInfo] = _store(s3).get_file_info(FileSelector(place, recursive=is_deep))
    except FileNotFoundError as error:
        raise SourceError(f"source {folder}: there is nothing below it; give the folder of the events") from error
    except OSError as error:
        raise SourceError(f"source {folder} cannot be listed: {error}; check s3.* and the keys") from error
    for one in found:
        if one.type == FileType.File:
            yield f"{OBJECTS}{one.path}", one.mtime_ns or 0, one.size or 0


class _Stored(io.RawIOBase):
    """The bytes of an object, from any position on."""

    def __init__(self, location: str, s3: S3Settings) -> None:
        self._location = location
        try:
            self._file = _store(s3).open_input_file(location.removeprefix(OBJECTS))
        except FileNotFoundError:
            raise
        except OSError as error:
            raise self._of_store(error) from error

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """See :class:`io.RawIOBase`."""
        return int(self._file.seek(offset, whence))

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """See :class:`io.RawIOBase`."""
        try:
            found = self._file.read(len(buffer))
        except OSError as error:
            raise self._of_store(error) from error
        buffer[: len(found)] = found
        return len(found)

    def close(self) -> None:
        """See :class:`io.RawIOBase`."""
        if not self.closed:
            self._file.close()
        super().close()

    def _of_store(self, error: OSError) -> OSError:
        # With a number it is no damage of the file, and the batch is repeated.
        return OSError(errno.EIO, f"{self._location} cannot be read: {error}")


def _store(s3: S3Settings) -> "S3FileSystem":
    return _connected(s3.model_dump_json(), s3.__class__)


@lru_cache(maxsize=4)
def _connected(s3: str, kind: type[S3Settings]) -> "S3FileSystem":
    from spark_jobs.lake.store.arrow import s3_filesystem  # noqa: PLC0415 only for such folders

    return s3_filesystem(kind.model_validate_json(s3))
