"""Rows of text with a delimiter, as JSON objects of text.

An empty cell is null. A row with fewer cells than there are columns, or with more, cannot be read, unless the columns
that the settings name end with ``*``: further cells then get their number as a name, from 1.

A row may go over several lines if a quote is open. If such a row cannot be read, only its first line is lost: reading
goes on with the line after the one with the quote.

Source: `RFC 4180 <https://www.rfc-editor.org/rfc/rfc4180>`_.
"""

import csv
import json
import re
from collections import deque
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from spark_jobs.config.encoding import MORE_COLUMNS, Encoding
from spark_jobs.contract.events import DEFAULT_MAX_RECORD_BYTES, INVALID_UTF8, RECORD_TOO_LARGE
from spark_jobs.formats.decoding import Decoded, decoded
from spark_jobs.formats.file_rows import MOST_RAW_BYTES, FileRow, rest_of_file
from spark_jobs.formats.input_file import InputFile
from spark_jobs.formats.refusal import Refused, invalid
from spark_jobs.formats.text_lines import DAMAGE, in_utf_8, is_comment, open_content, text_lines

_DELIMITER: Final = "\ufdd0"
"""Stands for a delimiter of several characters while a row is read: Unicode reserves it for use within a program."""
W3C_FIELDS: Final = "#Fields:"
"""Begins the comment that names the columns, in logs of CloudFront and IIS."""
_EXCEL = re.compile(rb"sep=(.)\r?\n?")
"""The first line of a file by which Excel knows the delimiter."""


@dataclass(frozen=True)
class CsvDecoder:
    """Decodes values of Kafka records, each one row.

    Attributes:
        encoding: its columns, delimiter and quote.
        max_bytes: longer values are not decoded.
    """

    encoding: Encoding
    max_bytes: int = DEFAULT_MAX_RECORD_BYTES

    def decode(self, value: bytes) -> Decoded:
        """See :class:`spark_jobs.formats.decoding.Decoder`."""
        return decoded(value, self.max_bytes, self._read)

    def _read(self, value: bytes) -> str:
        rows = list(_Rows(iter([in_utf_8(value, self.encoding.charset)]), self.encoding, ",", self.max_bytes))
        if len(rows) != 1:
            raise invalid(f"the value has {len(rows)} rows; it must have one")
        return _as_json(rows[0], *_named(self.encoding.columns))


def read_csv(file: InputFile, encoding: Encoding, max_bytes: int = DEFAULT_MAX_RECORD_BYTES) -> Iterator[FileRow]:
    """The rows of ``file`` in its order.

    Args:
        file: compressed or not, as its content says.
        encoding: its columns, delimiter, quote and more.
        max_bytes: longer lines, and quoted cells, are not read.

    Yields:
        Rows, and one for each part that could not be read.

    Raises:
        OSError: the file cannot be opened.
    """
    delimiter = "\t" if ".tsv" in file.name else ","
    with closing(open_content(file, encoding.charset)) as content:
        lines = text_lines(content.lines(max_bytes), encoding)
        try:
            first = next(lines, b"")
        except DAMAGE as error:
            yield rest_of_file("rows=0-", error)
            return
        if (found := _EXCEL.fullmatch(first)) and not encoding.delimiter:
            delimiter = found[1].decode("ascii", "replace")
        else:
            lines = chain([first] if first else [], lines)
        rows = _Rows(lines, encoding, delimiter, max_bytes)
        yield from _numbered(rows, encoding.columns)


def _numbered(rows: "_Rows", columns: tuple[str, ...]) -> Iterator[FileRow]:
    (names, has_more), number, is_first = _named(columns), 0, True
    while True:
        place = f"row={number}"
        try:
            cells = next(rows)
            if rows.fields and not columns:
                names, is_first = _names(rows.fields), False
            is_header = is_first and (not columns or cells == names)
            is_first = False
            if is_header:
                names = _names(cells)
                continue
            yield FileRow(place, _as_json(cells, names, has_more))
        except StopIteration:
            return
        except Refused as refused:
            yield FileRow(place, None, refused.verdict, refused.reason, rows.raw[:MOST_RAW_BYTES])
            if not names:
                return  # without names the other rows cannot be read either
        except DAMAGE as error:
            yield rest_of_file(f"rows={number}-", error)
            return
        number += 1


class _Rows(Iterator[list[str]]):
    """The rows of lines of bytes; ``raw`` has the bytes of the last one."""

    def __init__(self, lines: Iterator[bytes], encoding: Encoding, delimiter: str, max_bytes: int) -> None:
        csv.field_size_limit(2**31 - 1)  # lines are limited
        self._lines, self._again, self._taken = lines, deque[bytes](), list[bytes]()
        self._encoding, self._max_bytes = encoding, max_bytes
        self._delimiter = encoding.delimiter or delimiter
        self.fields = list[str]()
        """The names of the columns by the last comment that says them."""
        self._rows = self._reader()

    @property
    def raw(self) -> bytes:
        """The bytes of the last row."""
        return b"".join(self._taken)

    def __next__(self) -> list[str]:
        """The cells of the next row that is not blank.

        Raises:
            Refused: it cannot be read; the next one is tried after it.
        """
        cells: list[str] = []
        while not cells:
            self._taken = []
            try:
                cells = next(self._rows)
            except csv.Error as error:
                raise self._without_rest(f"the row cannot be read: {error}") from None
            except _OpenQuoteError:
                raise self._without_rest(f"a quote is open for more than {self._max_bytes} bytes") from None
        if any("\udc80" <= character <= "\udcff" for cell in cells if not cell.isascii() for character in cell):
            raise Refused(INVALID_UTF8, "the row is not UTF-8")
        if len(self._delimiter) > 1:
            return [cell.replace(_DELIMITER, self._delimiter) for cell in cells]
        return cells

    def _without_rest(self, reason: str) -> Refused:
        """Why the row is refused. The lines after its first one are read again: the quote may be a part of the text."""
        first, *rest = self._taken or [b""]
        self._taken = [first]
        self._again.extendleft(reversed(rest))
        self._rows = self._reader()
        if len(first) > self._max_bytes:
            return Refused(RECORD_TOO_LARGE, f"the line has more than {self._max_bytes} bytes")
        advice = '; if quotes belong to the text, set quote = ""' if self._encoding.quote and rest else ""
        return invalid(f"{reason}{advice}")

    def _reader(self) -> Iterator[list[str]]:
        encoding, given = self._encoding, dict[str, Any]()
        if encoding.escape:
            given["escapechar"] = encoding.escape
        return csv.reader(
            self._texts(),
            delimiter=_DELIMITER if len(self._delimiter) > 1 else self._delimiter,
            quotechar=encoding.quote or None,
            quoting=csv.QUOTE_MINIMAL if encoding.quote else csv.QUOTE_NONE,
            strict=True,
            **given,
        )

    def _texts(self) -> Iterator[str]:
        while True:
            line = self._again.popleft() if self._again else next(self._lines, None)
            if line is None:
                return
            if not self._taken and is_comment(line, self._encoding):
                text = line.decode("utf-8", errors="replace")
                self.fields = text.removeprefix(W3C_FIELDS).split() if text.startswith(W3C_FIELDS) else self.fields
                yield ""
                continue
            self._taken.append(line)
            if len(line) > self._max_bytes:
                raise csv.Error("the line is too long")
            if len(self._taken) > 1 and sum(map(len, self._taken)) > self._max_bytes:
                raise _OpenQuoteError
            text = line.decode("utf-8", errors="surrogateescape")
            yield text.replace(self._delimiter, _DELIMITER) if len(self._delimiter) > 1 else text


class _OpenQuoteError(Exception):
    """Raised when a quote is open for longer than a record may be."""


def _named(columns: tuple[str, ...]) -> tuple[list[str], bool]:
    """The names of the columns, and whether there may be more cells."""
    has_more = columns[-1:] == (MORE_COLUMNS,)
    return list(columns[:-1] if has_more else columns), has_more


def _names(cells: list[str]) -> list[str]:
    if repeated := [name for name in cells if cells.count(name) > 1]:
        raise invalid(f'the first row names the column "{repeated[0]}" twice; name the columns in the settings')
    return cells


def _as_json(cells: list[str], names: list[str], has_more: bool) -> str:  # noqa: FBT001 as the columns say
    if len(cells) < len(names) or (len(cells) > len(names) and not has_more):
        raise invalid(f"the row has {len(cells)} cells, and there are {len(names)} columns")
    more = map(str, range(len(names) + 1, len(cells) + 1))
    row = {name: cell or None for name, cell in zip((*names, *more), cells, strict=True)}
    return json.dumps(row, ensure_ascii=False, separators=(",", ":"))
