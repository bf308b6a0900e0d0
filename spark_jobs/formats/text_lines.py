"""Lines of files of text: decompressed, in UTF-8, none of them longer than a record may be."""

import bz2
import codecs
import gzip
import io
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final, cast

from spark_jobs.config.encoding import UTF_8, Encoding

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_UTF_16_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")
_GZIP, _ZSTD, _BZ2 = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"BZh"
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

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def lines(self, max_bytes: int) -> Iterator[bytes]:
        """The lines with their ends; of one that is longer than ``max_bytes``, its beginning, which is longer too."""
        while line := self._read(max_bytes + 2):
            end = line
            while len(line) > max_bytes and end and not end.endswith(b"\n"):
                end = self._read(_CHUNK)
            yield line

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def _read(self, size: int) -> bytes:
        try:
            return self._file.readline(size)
        except OSError as error:
            # Of the operating system's complaints, each has a number.
            if error.errno is None and not isinstance(error, gzip.BadGzipFile):
                raise DamagedError(str(error)) from error
            raise


def open_content(file: Path, charset: str = UTF_8) -> Content:
    """Opens ``file``, compressed by gzip, zstd or bzip2 or not, which its first bytes say.

    Args:
        file: of text.
        charset: of the text, unless it begins with the mark of UTF-16.

    Raises:
        OSError: it cannot be opened.
    """
    plain = _decompressed(file)
    try:
        start = plain.peek(len(_UTF_16_MARKS[0]))  # type: ignore[attr-defined]
    except (*DAMAGE, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        start = b""  # reading says why
    charset = "utf-16" if start.startswith(_UTF_16_MARKS) else charset
    return Content(plain if charset == UTF_8 else io.BufferedReader(_Recoded(plain, charset)))


def text_lines(lines: Iterator[bytes], encoding: Encoding) -> Iterator[bytes]:
    """``lines`` without those that are to be skipped, and without a byte order mark."""
    for number, line in enumerate(islice(lines, encoding.skip_lines, None)):
        yield line if number else line.removeprefix(_BYTE_ORDER_MARK)


def in_utf_8(value: bytes, charset: str) -> bytes:
    """``value`` in UTF-8; what is no text in its ``charset`` is none in UTF-8 either."""
    return value if charset == UTF_8 else value.decode(charset, _NO_TEXT).encode(UTF_8, "surrogateescape")


def _decompressed(file: Path) -> BinaryIO:
    with file.open("rb") as plain:
        start = plain.read(len(_ZSTD))
    if start.startswith(_GZIP):
        return io.BufferedReader(cast("io.RawIOBase", gzip.open(file)))
    if start.startswith(_BZ2):
        return io.BufferedReader(cast("io.RawIOBase", bz2.open(file)))
    if start.startswith(_ZSTD):
        import pyarrow as pa  # noqa: PLC0415 only for such files

        return io.BufferedReader(cast("io.RawIOBase", pa.input_stream(str(file), compression="zstd")))
    return file.open("rb")


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
