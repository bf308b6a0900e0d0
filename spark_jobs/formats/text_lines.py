"""Lines of files of text: decompressed, in UTF-8, none of them longer than a record may be."""

import bz2
import codecs
import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from itertools import islice
from typing import BinaryIO, Final, cast

from spark_jobs.config.encoding import UTF_8, Encoding
from spark_jobs.formats.input_file import InputFile

BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_MARKS: Final = {
    b"\xff\xfe\0\0": "utf-32",
    b"\0\0\xfe\xff": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}
"""By the bytes that a text begins with, how its characters are encoded; the longer ones first."""
_GZIP, _ZSTD, _BZ2 = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"BZh"
LONGEST_MARK: Final = len(_ZSTD)
"""Bytes at the beginning that say how a content is compressed."""
_CHUNK: Final = 64 * 1024
_NO_TEXT: Final = "adloom.no_text"


class DamagedError(Exception):
    """Raised when a compressed file cannot be decompressed any further."""


DAMAGE: Final = (gzip.BadGzipFile, EOFError, zlib.error, DamagedError)
"""Of compressed files; other errors of reading pass, and the batch is repeated."""
# A byte that is no UTF-8, so that whoever reads the text sees that it is none.
codecs.register_error(_NO_TEXT, lambda error: ("\udcff", cast("UnicodeDecodeError", error).end))


class Content:
    """The bytes of a file, decompressed and in UTF-8."""

    NEVER: Final = 2**63 - 1
    """A position that no file has."""

    def __init__(self, file: BinaryIO, stored: BinaryIO, *, is_plain: bool) -> None:
        self._file, self._stored = file, stored
        self.is_plain = is_plain
        """Whether these are the bytes of the file itself, so that reading can begin anywhere."""
        self.position = 0
        """How many bytes were read."""

    def lines(self, max_bytes: int) -> Iterator[bytes]:
        """The lines with their ends; of one that is longer than ``max_bytes``, its beginning, which is longer too."""
        while line := self._taken(self._file.readline, max_bytes + 2):
            if len(line) > max_bytes and not line.endswith(b"\n"):
                while (end := self._taken(self._file.readline, _CHUNK)) and not end.endswith(b"\n"):
                    pass
            yield line

    def read(self, count: int) -> bytes:
        """The next ``count`` bytes; fewer only at the end."""
        return self._taken(self._file.read, count)

    def seek(self, position: int) -> None:
        """Goes on at ``position``; only if the file ``is_plain``."""
        self.position = self._file.seek(position)

    def skip(self, count: int) -> None:
        """Leaves out the next ``count`` bytes."""
        if self.is_plain:
            self.seek(self.position + count)
            return
        while count > 0 and (found := self.read(min(count, _CHUNK))):
            count -= len(found)

    def close(self) -> None:
        """Closes the file."""
        self._file.close()
        self._stored.close()

    def _taken(self, read: Callable[[int], bytes], size: int) -> bytes:
        try:
            found = read(size)
        except OSError as error:
            # Of the operating system's complaints, each has a number.
            if error.errno is None and not isinstance(error, gzip.BadGzipFile):
                raise DamagedError(str(error)) from error
            raise
        self.position += len(found)
        return found


def open_content(file: InputFile, charset: str = UTF_8) -> Content:
    """Opens ``file``, compressed by gzip, zstd or bzip2 or not, which its first bytes say.

    Args:
        file: of text.
        charset: of the text, unless it begins with the mark of UTF-16 or UTF-32.

    Raises:
        OSError: it cannot be opened.
    """
    stored = file.open("rb")
    start = stored.read(LONGEST_MARK)
    stored.seek(0)
    plain = decompressed(stored, start)
    try:
        text = plain.peek(len(next(iter(_MARKS))))  # type: ignore[attr-defined]
    except (*DAMAGE, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        plain.close()
        stored.close()
        stored = file.open("rb")
        return Content(decompressed(stored, start), stored, is_plain=False)  # reading says what is wrong
    charset = next((found for mark, found in _MARKS.items() if text.startswith(mark)), charset)
    if charset == UTF_8:
        return Content(plain, stored, is_plain=plain is stored)
    return Content(io.BufferedReader(_Recoded(plain, charset)), stored, is_plain=False)


def text_lines(lines: Iterator[bytes], encoding: Encoding) -> Iterator[bytes]:
    """``lines`` without those that are to be skipped, and without a byte order mark."""
    for number, line in enumerate(islice(lines, encoding.skip_lines, None)):
        yield line if number else line.removeprefix(BYTE_ORDER_MARK)


def is_comment(line: bytes, encoding: Encoding) -> bool:
    """Whether ``line`` is no record because of how it begins."""
    return bool(encoding.comment) and line.startswith(encoding.comment.encode())


def in_utf_8(value: bytes, charset: str) -> bytes:
    """``value`` in UTF-8; what is no text in its ``charset`` is none in UTF-8 either."""
    return value if charset == UTF_8 else value.decode(charset, _NO_TEXT).encode(UTF_8, "surrogateescape")


def decompressed(stored: BinaryIO, start: bytes) -> BinaryIO:
    """The content of ``stored``, which begins with ``start``: itself, if it is not compressed."""
    if start.startswith(_GZIP):
        return io.BufferedReader(cast("io.RawIOBase", gzip.open(stored)))
    if start.startswith(_BZ2):
        return io.BufferedReader(cast("io.RawIOBase", bz2.open(stored)))
    if start.startswith(_ZSTD):
        import pyarrow as pa  # noqa: PLC0415 only for such files

        return io.BufferedReader(cast("io.RawIOBase", pa.input_stream(stored, compression="zstd")))
    return stored


class _Recoded(io.RawIOBase):
    """Text of another charset as UTF-8."""

    def __init__(self, file: BinaryIO, charset: str) -> None:
        self._file, self._left = file, b""
        self._decoder = codecs.getincrementaldecoder(charset)(_NO_TEXT)

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fills ``buffer``, and says with how many bytes."""
        while not self._left:
            chunk = self._file.read(_CHUNK)
            self._left = self._decoder.decode(chunk, final=not chunk).encode(UTF_8, "surrogateescape")
            if not chunk:
                break
        count = min(len(buffer), len(self._left))
        buffer[:count], self._left = self._left[:count], self._left[count:]
        return count

    def close(self) -> None:
        """Closes the file, too."""
        self._file.close()
        super().close()
