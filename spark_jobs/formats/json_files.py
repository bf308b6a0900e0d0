r"""Files of JSON: a value on each line, or values however they lie.

The first lines decide::

    {"id": 1}⏎{"id": 2}        lines: each is a record, and one that cannot be read harms no other
    {"id": 1}{"id": 2}         values: each is a record, whatever lies between them
    [{"id": 1}, {"id": 2}]     values: each element of an array is a record
    {⏎ "id": 1⏎}               values: over several lines

Of values, one that cannot be read is a record up to the next line that begins as it does.
"""

import json
import re
from collections.abc import Iterator
from contextlib import closing
from enum import Enum, auto
from itertools import islice
from typing import Final, NamedTuple

from spark_jobs.config.encoding import Encoding
from spark_jobs.contract.events import DEFAULT_MAX_RECORD_BYTES, INVALID_ENCODING, RECORD_TOO_LARGE
from spark_jobs.formats.file_rows import MOST_RAW_BYTES, FileRow, rest_of_file
from spark_jobs.formats.input_file import InputFile
from spark_jobs.formats.text_lines import BYTE_ORDER_MARK, DAMAGE, Content, is_comment, open_content

_BLANK: Final = b" \t\r\n\0"
_NEAR_END: Final = 8
"""Characters at the end of what is there that may be the beginning of an escape or a word."""
_HEAD: Final = 1024 * 1024
_FIRST_LINES: Final = 100
_CHUNK: Final = 64 * 1024
_BYTES: Final = "iso-8859-1"
"""Values are looked for in text with a character for each byte: only letters of ASCII separate them."""
_BETWEEN: Final = re.compile(r"[ \t\r\n\0]*")
_BETWEEN_ELEMENTS: Final = re.compile(r"[ \t\r\n\0,]*")
_decode = json.JSONDecoder().raw_decode


class Block(NamedTuple):
    """A part of a file that a task reads: the lines that begin at bytes from ``start`` up to ``end``.

    What cannot be divided belongs to the block from 0 on.
    """

    start: int
    end: int


def read_json(
    file: InputFile, encoding: Encoding, max_bytes: int = DEFAULT_MAX_RECORD_BYTES, block: Block | None = None
) -> Iterator[FileRow]:
    """The values of ``file`` in its order, as they are.

    Args:
        file: compressed or not, as its content says.
        encoding: its character set, and which lines are no records.
        max_bytes: longer values are not read.
        block: the part of it that is read; None: all.

    Yields:
        Rows whose ``raw`` is the value, and one for each part that could not be read. Positions are those in the text
        once it is decompressed and in UTF-8.

    Raises:
        OSError: the file cannot be opened or read.
    """
    start = block.start if block else 0
    try:
        with closing(open_content(file, encoding.charset)) as head:
            # A file that is not divided has been read with its first block.
            has_lines, can_start = _has_lines(head, encoding, max_bytes), head.is_plain
        if start and not (has_lines and can_start):
            return
        with closing(open_content(file, encoding.charset)) as content:
            if has_lines:
                part = block if block and can_start else Block(0, content.NEVER)
                yield from _Lines(content, encoding, max_bytes, part).rows()
            else:
                yield from _Values(content, encoding, max_bytes)
    except DAMAGE as error:
        yield FileRow("bytes=0-", None, INVALID_ENCODING, f"the file cannot be read: {error}")


def _has_lines(content: Content, encoding: Encoding, max_bytes: int) -> bool:
    """Whether each line of the file is a record."""
    most, is_first = max(_HEAD, max_bytes), True
    for number, line in enumerate(islice(content.lines(most), encoding.skip_lines + _FIRST_LINES)):
        bare = _bare(line, is_first=not number)
        if number < encoding.skip_lines or not bare or is_comment(bare, encoding):
            continue
        how = _Line.LONG if len(line) > most else _line(bare.decode(_BYTES))
        if how is _Line.OBJECT:
            return True
        if is_first and how is not _Line.VALUES:
            return how is _Line.OTHER
        is_first = False
    # A line that is an array, or several values, may be a fault among lines that are objects.
    return is_first


class _Line(Enum):
    """A line, by the values on it."""

    OBJECT = auto()
    VALUES = auto()
    """Several values, or an array."""
    BEGINNING = auto()
    """The beginning of a value that goes on behind it."""
    LONG = auto()
    OTHER = auto()


def _line(text: str) -> _Line:
    if text[0] not in "{[":
        return _Line.OTHER
    try:
        _, end = _decode(text)
    except json.JSONDecodeError as error:
        return _Line.BEGINNING if _is_cut(error, len(text)) else _Line.OTHER
    except RecursionError:
        return _Line.OTHER
    return _Line.OBJECT if text[0] == "{" and end == len(text) else _Line.VALUES


def _is_cut(error: json.JSONDecodeError, length: int) -> bool:
    return error.msg.startswith("Unterminated string") or error.pos >= length - _NEAR_END


class _Lines:
    """The values of a file that has them on lines."""

    def __init__(self, content: Content, encoding: Encoding, max_bytes: int, block: Block) -> None:
        self._content, self._encoding, self._max_bytes, self._block = content, encoding, max_bytes, block

    def rows(self) -> Iterator[FileRow]:
        """The values on the lines that begin in the block."""
        content, block, lines = self._content, self._block, self._content.lines(self._max_bytes)
        skipped = 0 if block.start else self._encoding.skip_lines
        if block.start:
            content.seek(block.start - 1)
            next(lines, b"")  # it begins in the block before
        number, begin = 0, content.position
        try:
            while begin < block.end and (line := next(lines, b"")):
                end, number = content.position, number + 1
                if number > skipped:
                    # Hardly any line needs more than this look.
                    is_plain = line[:1] == b"{" and b"\0" not in line and len(line) <= self._max_bytes
                    if is_plain and not self._encoding.comment:
                        yield FileRow(f"bytes={begin}-{end}", None, None, None, line.removesuffix(b"\n"), number)
                    else:
                        yield from self._of_line(line, begin, end, number)
                begin = end
        except DAMAGE as error:
            yield rest_of_file(f"bytes={begin}-", error, number + 1)

    def _of_line(self, line: bytes, begin: int, end: int, number: int) -> Iterator[FileRow]:
        bare = _bare(line, is_first=not begin)
        if not bare or is_comment(bare, self._encoding):
            return
        if len(line) > self._max_bytes + 1:
            yield _too_large(line, begin, end, number)
            return
        # A file that was given its size beforehand ends with zeros.
        raw = line[:-1] if line.endswith(b"\n") else line.rstrip(b"\0")
        yield FileRow(f"bytes={begin}-{end}", None, raw=raw, line=number)


def _next(text: str, at: int, *, in_list: bool) -> int:
    """Where the next value may begin."""
    found = (_BETWEEN_ELEMENTS if in_list else _BETWEEN).match(text, at)
    return found.end() if found else at


class _Values(Iterator[FileRow]):
    """The values of a file that go over lines, of arrays and of others."""

    def __init__(self, content: Content, encoding: Encoding, max_bytes: int) -> None:
        self._content, self._max_bytes = content, max_bytes
        for _ in islice(content.lines(max_bytes), encoding.skip_lines):
            pass
        self._begin = content.position
        """The position of the first character that is here."""
        self._text, self._at, self._line = "", 0, 1 + encoding.skip_lines
        self._in_list = self._is_first = self._has_ended = False

    def __next__(self) -> FileRow:
        while not self._has_ended or self._at < len(self._text):
            try:
                row = self._value()
            except DAMAGE as error:
                self._has_ended, self._text, self._at = True, "", 0
                return rest_of_file(f"bytes={self._begin}-", error, self._line)
            if row:
                return row
        raise StopIteration

    def _value(self) -> FileRow | None:
        """The next value; None: the file has ended, or more of it has to be here."""
        if not self._begin + self._at and self._text.startswith(BYTE_ORDER_MARK.decode(_BYTES)):
            self._at = len(BYTE_ORDER_MARK)
        self._go_to(_next(self._text, self._at, in_list=self._in_list))
        if self._at == len(self._text):
            self._read(_CHUNK)
            return None
        here = self._text[self._at]
        if here in "[]" and self._in_list is (here == "]"):
            self._in_list = not self._in_list
            self._go_to(self._at + 1)
            return None
        try:
            _, end = _decode(self._text, self._at)
            # A number may go on.
            is_cut = end == len(self._text) and here not in '{["'
        except json.JSONDecodeError as error:
            end, is_cut = self._at, _is_cut(error, len(self._text))
        except RecursionError:
            end, is_cut = self._at, False
        if is_cut and not self._has_ended and len(self._text) - self._at <= self._max_bytes:
            self._read(max(_CHUNK, len(self._text) - self._at))
            return None
        return self._row(end) if end > self._at else self._unreadable()

    def _row(self, end: int) -> FileRow:
        begin, number = self._begin + self._at, self._line
        raw = self._text[self._at : end].encode(_BYTES)
        self._go_to(end)
        if len(raw) > self._max_bytes:
            return _too_large(raw, begin, begin + len(raw), number)
        return FileRow(f"bytes={begin}-{begin + len(raw)}", None, raw=raw, line=number)

    def _unreadable(self) -> FileRow:
        """A part that is no value, up to the next line that begins as this one does."""
        begin, number, indent = self._begin + self._at, self._line, self._indent()
        next_one = re.compile(rf"\n{indent}[\[{{]")
        raw, at = "", self._at + 1
        while not (found := next_one.search(self._text, at)) and not self._has_ended:
            # Only its beginning is kept, however far it goes.
            keep = max(self._at, len(self._text) - len(indent) - 2)
            raw = (raw + self._text[self._at : keep])[: self._max_bytes + 1]
            self._go_to(keep)
            self._read(_CHUNK)
            at = self._at
        end = found.start() if found else len(self._text)
        raw = (raw + self._text[self._at : end])[: self._max_bytes + 1].rstrip(
            " \t\r\n\0," if self._in_list else " \t\r\n\0"
        )
        self._go_to(end)
        to = self._begin + self._at
        if len(raw) > self._max_bytes:
            return _too_large(raw.encode(_BYTES), begin, to, number)
        return FileRow(f"bytes={begin}-{to}", None, raw=raw.encode(_BYTES), line=number)

    def _indent(self) -> str:
        """The white space before the value on its line."""
        before = self._text[self._text.rfind("\n", 0, self._at) + 1 : self._at]
        return before if not before.strip(" \t") else ""

    def _go_to(self, at: int) -> None:
        self._line += self._text.count("\n", self._at, at)
        self._at = at

    def _read(self, count: int) -> None:
        """Reads ``count`` more bytes, and lets go of what lies before the line of the value."""
        keep = self._text.rfind("\n", 0, self._at) + 1
        if keep == 0 and self._at > _CHUNK:
            keep = self._at
        more = self._content.read(count)
        self._has_ended = not more
        self._text = self._text[keep:] + more.decode(_BYTES)
        self._begin, self._at = self._begin + keep, self._at - keep


def _bare(line: bytes, *, is_first: bool) -> bytes:
    return (line.removeprefix(BYTE_ORDER_MARK) if is_first else line).strip(_BLANK)


def _too_large(raw: bytes, begin: int, end: int, number: int) -> FileRow:
    reason = f"the value has {end - begin} bytes"
    return FileRow(f"bytes={begin}-{end}", None, RECORD_TOO_LARGE, reason, raw[:MOST_RAW_BYTES], number)
