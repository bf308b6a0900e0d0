"""Avro object container files, read block by block: memory depends on the block size, not on the file size.

A row that cannot be decoded takes the rest of its block with it, because nothing says where the next one begins. A
damaged block is left out up to the next sync marker.

Source: `Avro specification, "Object Container Files" <https://avro.apache.org/docs/1.12.0/specification/>`_.
"""

import bz2
import lzma
import os
import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO

from spark_jobs.formats.avro import AvroReader
from spark_jobs.formats.avro_binary import block, cut, integer
from spark_jobs.formats.avro_schema import SchemaError, parse_schema
from spark_jobs.formats.file_rows import MOST_RAW_BYTES, FileRow
from spark_jobs.formats.input_file import InputFile
from spark_jobs.formats.refusal import Refused, incompatible, invalid
from spark_jobs.formats.schema import AVRO, Schema

_MAGIC = b"Obj\x01"
_SYNC_BYTES = 16
_CRC_BYTES = 4
_LONGEST_NUMBERS = 20
"""Bytes of the two numbers before a block."""
_FIRST_READ = 64 * 1024
_MOST_EMPTY_ROWS = 100_000
"""Rows of a block that take no bytes: a few bytes could announce any number of them."""
_MOST_BLOCK = 256 * 1024 * 1024
"""Bytes of a block once it is decompressed."""


def read_avro(file: InputFile, reader: Schema | None = None) -> Iterator[FileRow]:
    """The rows of ``file`` in its order.

    Args:
        file: an object container file.
        reader: the schema to read rows as; None: the file's own.

    Yields:
        Rows, and one for each part that could not be read.

    Raises:
        OSError: the file cannot be opened or read.
    """
    with file.open("rb") as content:
        size = content.seek(0, os.SEEK_END)
        content.seek(0)
        try:
            rows, sync, decompress = _header(content, reader)
        except Refused as refused:
            yield FileRow(f"bytes=0-{size}", None, refused.verdict, refused.reason)
            return
        yield from _blocks(content, size, sync, rows, decompress)


def _header(content: BinaryIO, reader: Schema | None) -> tuple[AvroReader, bytes, Callable[[bytes], bytes]]:
    """The decoder of the file's rows, its sync marker, and the decompressor of its blocks; then come the blocks."""
    wanted, data = _FIRST_READ, b""
    while True:
        data += content.read(wanted)
        if not data.startswith(_MAGIC):
            raise invalid("it does not begin as an Avro object container file does")
        try:
            meta, at = _metadata(data, len(_MAGIC))
            sync, at = cut(data, at, _SYNC_BYTES)
            break
        except IndexError:
            if len(data) < wanted or wanted > _MOST_BLOCK:
                raise invalid("it ends within its header") from None
            wanted = len(data)
    content.seek(at)
    codec = meta.get("avro.codec", b"null").decode("ascii", "replace")
    if codec not in _CODECS:
        raise incompatible(f"its codec {codec} is not supported; there are {', '.join(_CODECS)}")
    try:
        schema = Schema(AVRO, meta.get("avro.schema", b"").decode(), name="its schema")
        return AvroReader(parse_schema(schema), parse_schema(reader) if reader else None), sync, _CODECS[codec]
    except (SchemaError, UnicodeDecodeError) as error:
        raise incompatible(str(error)) from None


def _metadata(data: bytes, at: int) -> tuple[dict[str, bytes], int]:
    found: dict[str, bytes] = {}
    while True:
        count, at = integer(data, at)
        if count < 0:
            _, at = integer(data, at)
        if not count:
            return found, at
        for _ in range(abs(count)):
            key, at = block(data, at)
            found[key.decode("utf-8", "replace")], at = block(data, at)


def _blocks(
    content: BinaryIO, size: int, sync: bytes, reader: AvroReader, decompress: Callable[[bytes], bytes]
) -> Iterator[FileRow]:
    number, at = 0, content.tell()
    while at < size:
        try:
            count, packed, end = _block(content, at, size, sync)
        except Refused as refused:
            end = _after_next_sync(content, at, sync) or size
            yield FileRow(f"bytes={at}-{end}", None, refused.verdict, refused.reason, _raw(content, at, end))
        else:
            yield from _rows(packed, count, number, reader, decompress)
            number += count
        at = end


def _block(content: BinaryIO, at: int, size: int, sync: bytes) -> tuple[int, bytes, int]:
    """The number of rows in the block at ``at``, its bytes, and where it ends."""
    content.seek(at)
    numbers = content.read(_LONGEST_NUMBERS)
    try:
        count, begins = integer(numbers, 0)
        length, begins = integer(numbers, begins)
    except IndexError:
        raise invalid("the file ends within a block") from None
    if count < 0 or length < 0:
        raise invalid(f"a block has {count} rows and {length} bytes")
    if at + begins + length + _SYNC_BYTES > size:
        raise invalid("the file ends within a block")
    content.seek(at + begins)
    packed = content.read(length)
    if content.read(_SYNC_BYTES) != sync:
        raise invalid("a block does not end with the file's sync marker")
    return count, packed, at + begins + length + _SYNC_BYTES


def _rows(
    packed: bytes, count: int, number: int, reader: AvroReader, decompress: Callable[[bytes], bytes]
) -> Iterator[FileRow]:
    row, at, data = number, 0, packed
    try:
        data = decompress(packed)
        if count > max(len(data), _MOST_EMPTY_ROWS):
            raise invalid(f"a block has {count} rows in {len(data)} bytes")
        for row in range(number, number + count):
            text, at = reader.decode_next(data, at)
            yield FileRow(f"row={row}", text)
        if at < len(data):
            raise invalid(f"{len(data) - at} bytes follow the last row of a block")
    except Refused as refused:
        rest = data[at : at + MOST_RAW_BYTES]
        yield FileRow(f"rows={row}-{number + count - 1}", None, refused.verdict, refused.reason, rest)


def _after_next_sync(content: BinaryIO, at: int, sync: bytes) -> int | None:
    """Where the next block begins after the first sync marker from ``at`` on; None without one."""
    content.seek(at)
    seen, start = b"", at
    while more := content.read(_FIRST_READ):
        seen += more
        if (found := seen.find(sync)) >= 0:
            return start + found + _SYNC_BYTES
        start += max(len(seen) - _SYNC_BYTES + 1, 0)
        seen = seen[-_SYNC_BYTES + 1 :]
    return None


def _raw(content: BinaryIO, at: int, end: int) -> bytes:
    content.seek(at)
    return content.read(min(end - at, MOST_RAW_BYTES))


def _limited(data: bytes) -> bytes:
    if len(data) > _MOST_BLOCK:
        raise invalid(f"a block has more than {_MOST_BLOCK} bytes once it is decompressed")
    return data


def _deflate(data: bytes) -> bytes:
    try:
        return _limited(zlib.decompressobj(-zlib.MAX_WBITS).decompress(data, _MOST_BLOCK + 1))
    except zlib.error as error:
        raise invalid(f"a block cannot be decompressed: {error}") from None


def _bzip2(data: bytes) -> bytes:
    try:
        return _limited(bz2.BZ2Decompressor().decompress(data, _MOST_BLOCK + 1))
    except (OSError, EOFError) as error:
        raise invalid(f"a block cannot be decompressed: {error}") from None


def _xz(data: bytes) -> bytes:
    try:
        return _limited(lzma.LZMADecompressor().decompress(data, _MOST_BLOCK + 1))
    except (lzma.LZMAError, EOFError) as error:
        raise invalid(f"a block cannot be decompressed: {error}") from None


def _snappy(data: bytes) -> bytes:
    """Snappy, and after it a CRC of the decompressed bytes."""
    import pyarrow as pa  # noqa: PLC0415 only with this codec

    size, shift = 0, 0
    for byte in data[:5]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:  # noqa: PLR2004 the last byte of a number
            break
    if size > _MOST_BLOCK:
        raise invalid(f"a block has more than {_MOST_BLOCK} bytes once it is decompressed")
    try:
        found: bytes = pa.Codec("snappy").decompress(data[:-_CRC_BYTES], size, asbytes=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise invalid(f"a block cannot be decompressed: {error}") from None
    if zlib.crc32(found) != int.from_bytes(data[-_CRC_BYTES:], "big"):
        raise invalid("a block is damaged: its CRC is another one")
    return found


def _zstandard(data: bytes) -> bytes:
    import pyarrow as pa  # noqa: PLC0415 only with this codec

    try:
        with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
            return _limited(stream.read(_MOST_BLOCK + 1))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise invalid(f"a block cannot be decompressed: {error}") from None


_CODECS: dict[str, Callable[[bytes], bytes]] = {
    "null": _limited,
    "deflate": _deflate,
    "snappy": _snappy,
    "zstandard": _zstandard,
    "bzip2": _bzip2,
    "xz": _xz,
}
