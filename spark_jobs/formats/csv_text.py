"""Rows of text with a delimiter, as JSON objects of text.

An empty cell is null. A row with fewer cells than there are columns, or more than its file's first row has, cannot be
read; cells beyond the columns that the settings name get their number as a name, from 1.

Source: `RFC 4180 <https://www.rfc-editor.org/rfc/rfc4180>`_.
"""

import csv
import gzip
import json
import zlib
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, cast

from spark_jobs.config.encoding import Encoding
from spark_jobs.contract.events import DEFAULT_MAX_RECORD_BYTES, INVALID_ENCODING, INVALID_UTF8, RECORD_TOO_LARGE
from spark_jobs.formats.decoding import Decoded
from spark_jobs.formats.file_rows import MOST_RAW_BYTES, FileRow
from spark_jobs.formats.refusal import Refused, invalid

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_MOST_CELL: Final = 64 * 1024 * 1024
"""Characters; a quote that is never closed would otherwise take in the rest of the file."""
_DAMAGE = (gzip.BadGzipFile, EOFError, zlib.error)
"""Of compressed files; other errors of reading pass, and the batch is repeated."""


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
        if len(value) > self.max_bytes:
            return Decoded(None, RECORD_TOO_LARGE, f"the value has {len(value)} bytes, more than {self.max_bytes}")
        try:
            rows = list(_Rows(iter([value]), self.encoding, ","))
            if len(rows) != 1:
                raise invalid(f"the value has {len(rows)} rows; it must have one")
            return Decoded(_as_json(rows[0], self.encoding.columns, has_more=True))
        except Refused as refused:
            return Decoded(None, refused.verdict, refused.reason)


def read_csv(file: Path, encoding: Encoding) -> Iterator[FileRow]:
    """The rows of ``file`` in its order.

    Args:
        file: ``.csv`` or ``.tsv``, or one of these with ``.gz``.
        encoding: its columns, delimiter and quote.

    Yields:
        Rows, and one for each part that could not be read.

    Raises:
        OSError: the file cannot be opened.
    """
    delimiter = "\t" if file.name.removesuffix(".gz").endswith(".tsv") else ","
    with closing(_open(file)) as content:
        yield from _numbered(_Rows(_without_mark(content), encoding, delimiter), encoding.columns)


def _numbered(rows: "_Rows", columns: tuple[str, ...]) -> Iterator[FileRow]:
    names, number, is_first = list(columns), 0, True
    while True:
        place = f"row={number}"
        try:
            cells = next(rows)
            is_header = is_first and (not columns or cells == names)
            if is_header:
                names, is_first = _names(cells), False
                continue
            is_first = False
            yield FileRow(place, _as_json(cells, names, has_more=bool(columns)))
        except StopIteration:
            return
        except Refused as refused:
            yield FileRow(place, None, refused.verdict, refused.reason, rows.raw[:MOST_RAW_BYTES])
            if not names:
                return  # without names the other rows cannot be read either
        except _DAMAGE as error:
            yield FileRow(f"rows={number}-", None, INVALID_ENCODING, f"the rest of the file cannot be read: {error}")
            return
        number += 1


class _Rows(Iterator[list[str]]):
    """The rows of lines of bytes; ``raw`` has the bytes of the last one."""

    def __init__(self, lines: Iterator[bytes], encoding: Encoding, delimiter: str) -> None:
        csv.field_size_limit(_MOST_CELL)
        self.raw, self._lines = b"", lines
        self._rows = csv.reader(
            self._texts(),
            delimiter=encoding.delimiter or delimiter,
            quotechar=encoding.quote or None,
            quoting=csv.QUOTE_MINIMAL if encoding.quote else csv.QUOTE_NONE,
            strict=True,
        )

    def __next__(self) -> list[str]:
        """The cells of the next row that is not blank.

        Raises:
            Refused: it cannot be read; the next one is tried after it.
        """
        cells: list[str] = []
        while not cells:
            self.raw = b""
            try:
                cells = next(self._rows)
            except csv.Error as error:
                raise invalid(f"the row cannot be read: {error}") from None
        if any("\udc80" <= character <= "\udcff" for cell in cells if not cell.isascii() for character in cell):
            raise Refused(INVALID_UTF8, "the row is not UTF-8")
        return cells

    def _texts(self) -> Iterator[str]:
        for line in self._lines:
            self.raw += line
            yield line.decode("utf-8", errors="surrogateescape")


def _open(file: Path) -> BinaryIO:
    return cast("BinaryIO", gzip.open(file)) if file.suffix == ".gz" else file.open("rb")


def _without_mark(lines: Iterator[bytes]) -> Iterator[bytes]:
    for number, line in enumerate(lines):
        yield line if number else line.removeprefix(_BYTE_ORDER_MARK)


def _names(cells: list[str]) -> list[str]:
    if repeated := [name for name in cells if cells.count(name) > 1]:
        raise invalid(f'the first row names the column "{repeated[0]}" twice; name the columns in the settings')
    return cells


def _as_json(cells: list[str], names: "list[str] | tuple[str, ...]", *, has_more: bool) -> str:
    if len(cells) < len(names) or (len(cells) > len(names) and not has_more):
        raise invalid(f"the row has {len(cells)} cells, and there are {len(names)} columns")
    more = map(str, range(len(names) + 1, len(cells) + 1))
    row = {name: cell or None for name, cell in zip((*names, *more), cells, strict=True)}
    return json.dumps(row, ensure_ascii=False, separators=(",", ":"))
