"""The small files of a lake on a local disk."""

import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

from spark_jobs.lake.store.files import FileInfo


class LocalFiles:
    """See :class:`spark_jobs.lake.store.files.Files`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def read(self, key: str) -> bytes | None:
        """The file's content; None if there is no such file."""
        try:
            return (self.root / key).read_bytes()
        except FileNotFoundError:
            return None

    def write(self, key: str, data: bytes) -> None:
        """Writes ``data`` to the file, atomically."""
        self._draft(key, data).replace(self.root / key)

    def create(self, key: str, data: bytes) -> bool:
        """Writes ``data`` to the file if it does not exist, atomically; whether it did."""
        draft = self._draft(key, data)
        try:
            (self.root / key).hardlink_to(draft)
        except FileExistsError:
            return False
        finally:
            draft.unlink()
        return True

    def _draft(self, key: str, data: bytes) -> Path:
        file = self.root / key
        file.parent.mkdir(parents=True, exist_ok=True)
        # Two processes may write the same file at once.
        draft = file.with_name(f"{file.name}.{uuid4().hex}.part")
        draft.write_bytes(data)
        return draft

    def walk(self, folder: str) -> Iterator[FileInfo]:
        """Every file below ``folder``; symbolic links are neither listed nor followed."""
        for path in (self.root / folder).rglob("*"):
            with suppress(FileNotFoundError):  # deleted since it was listed: others write here
                if path.is_file() and not path.is_symlink():
                    found = path.stat()
                    modified_at = datetime.fromtimestamp(found.st_mtime, UTC)
                    yield FileInfo(path.relative_to(self.root).as_posix(), found.st_size, modified_at)

    def names(self, folder: str, *, after: str = "") -> list[str]:
        """The sorted names in ``folder`` that sort after ``after``."""
        try:
            return sorted(path.name for path in (self.root / folder).iterdir() if path.name > after)
        except (FileNotFoundError, NotADirectoryError):
            return []

    def delete(self, keys: Iterable[str]) -> None:
        """Deletes the files, and the folders that this leaves empty."""
        for key in keys:
            (self.root / key).unlink(missing_ok=True)
            for folder in (self.root / key).parents:
                if folder == self.root or not _is_removed(folder):
                    break

    def delete_folder(self, folder: str) -> None:
        """Deletes ``folder`` and its content; symbolic links are deleted, not followed."""
        while (self.root / folder).is_dir():
            with suppress(FileNotFoundError):  # another process deletes there, too
                shutil.rmtree(self.root / folder)


def _is_removed(folder: Path) -> bool:
    try:
        folder.rmdir()
    except OSError:
        return False
    return True
