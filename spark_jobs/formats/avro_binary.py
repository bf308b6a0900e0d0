"""Avro's binary encoding of single values, turned to JSON text.

Each reader takes the bytes and a position, and returns the text and the next position. Past the end of the bytes it
raises an IndexError or a ``struct.error``; the caller makes a verdict of them.
"""

import struct
from collections.abc import Callable
from uuid import UUID

from spark_jobs.formats import json_text
from spark_jobs.formats.avro_schema import Node
from spark_jobs.formats.refusal import invalid

Reader = Callable[[bytes, int], tuple[str, int]]
Slice = tuple[bytes, int]

_SHORT = 0x80
"""A first byte below it is the whole number."""
_MOST_SHIFT = 63
_INT_RANGE = range(-(2**31), 2**31)
_LONG_MASK = 2**64 - 1
_SMALL = [str((n >> 1) ^ -(n & 1)) for n in range(_SHORT)]
"""The text of each number of one byte."""
_NANOS, _MICROS, _MILLIS = -1000, 1, 1000
"""A unit of time in microseconds; negative: this many of it make one."""


def integer(data: bytes, at: int) -> tuple[int, int]:
    """A zigzag number of up to 64 bits."""
    byte = data[at]
    at += 1
    if byte < _SHORT:
        return (byte >> 1) ^ -(byte & 1), at
    value, shift = byte & 0x7F, 7
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < _SHORT:
            break
        shift += 7
        if shift > _MOST_SHIFT:
            raise invalid(f"the number at byte {at - 10} has more than 64 bits")
    if value > _LONG_MASK:
        raise invalid(f"the number that ends at byte {at} has more than 64 bits")
    return (value >> 1) ^ -(value & 1), at


def block(data: bytes, at: int) -> Slice:
    """Bytes with their length before them."""
    size, at = integer(data, at)
    return cut(data, at, size)


def cut(data: bytes, at: int, size: int) -> Slice:
    """``size`` bytes from ``at`` on."""
    end = at + size
    if size < 0:
        raise invalid(f"the length before byte {at} is negative: {size}")
    if end > len(data):
        raise IndexError
    return data[at:end], end


def read_null(_data: bytes, at: int) -> tuple[str, int]:
    """A null, which takes no bytes."""
    return json_text.NULL, at


def read_boolean(data: bytes, at: int) -> tuple[str, int]:
    """A boolean."""
    byte = data[at]
    if byte > 1:
        raise invalid(f"the boolean at byte {at} is {byte}")
    return ("true" if byte else "false"), at + 1


def read_long(data: bytes, at: int) -> tuple[str, int]:
    """A long."""
    byte = data[at]
    if byte < _SHORT:
        return _SMALL[byte], at + 1
    value, at = integer(data, at)
    return str(value), at


def read_int(data: bytes, at: int) -> tuple[str, int]:
    """An int."""
    value, at = small_integer(data, at)
    return str(value), at


def small_integer(data: bytes, at: int) -> tuple[int, int]:
    """A number of up to 32 bits."""
    value, end = integer(data, at)
    if value not in _INT_RANGE:
        raise invalid(f"the int at byte {at} has more than 32 bits")
    return value, end


def read_float(data: bytes, at: int) -> tuple[str, int]:
    """A float."""
    return json_text.number(struct.unpack_from("<f", data, at)[0]), at + 4


def read_double(data: bytes, at: int) -> tuple[str, int]:
    """A double."""
    return json_text.number(struct.unpack_from("<d", data, at)[0]), at + 8


def read_string(data: bytes, at: int) -> tuple[str, int]:
    """A string."""
    size = data[at]
    if size < _SHORT and not size & 1:
        start, at = at + 1, at + 1 + (size >> 1)
        if at > len(data):
            raise IndexError
        return json_text.quoted(data[start:at].decode()), at
    text, at = block(data, at)
    return json_text.quoted(text.decode()), at


def read_bytes(data: bytes, at: int) -> tuple[str, int]:
    """Bytes."""
    value, at = block(data, at)
    return json_text.binary(value), at


_PLAIN: dict[str, Reader] = {
    "null": read_null,
    "boolean": read_boolean,
    "int": read_int,
    "long": read_long,
    "float": read_float,
    "double": read_double,
    "string": read_string,
    "bytes": read_bytes,
}
_UNITS: dict[str, tuple[Callable[[int], str | None], int]] = {
    "date": (json_text.date, _MICROS),
    "time-millis": (json_text.time_of_day, _MILLIS),
    "time-micros": (json_text.time_of_day, _MICROS),
    "timestamp-millis": (json_text.instant, _MILLIS),
    "timestamp-micros": (json_text.instant, _MICROS),
    "timestamp-nanos": (json_text.instant, _NANOS),
    "local-timestamp-millis": (json_text.local_instant, _MILLIS),
    "local-timestamp-micros": (json_text.local_instant, _MICROS),
    "local-timestamp-nanos": (json_text.local_instant, _NANOS),
}


def value_reader(written: str, node: Node) -> Reader:
    """The reader of a primitive or fixed value.

    Args:
        written: the primitive type that it was written as; it may be promoted to ``node``.
        node: what it is read as, with its logical type.
    """
    if node.kind in ("bytes", "string", "fixed"):
        return _bytes_reader(node)
    if node.kind in ("float", "double") and written in ("int", "long"):
        return _numbers(small_integer if written == "int" else integer, lambda value: json_text.number(float(value)))
    if node.kind in ("int", "long"):
        take = small_integer if written == "int" else integer
        return _times(take, node.logical) if node.logical else _PLAIN[written]
    return _PLAIN[written]


def _bytes_reader(node: Node) -> Reader:
    if not node.logical and node.kind != "fixed":
        return _PLAIN[node.kind]
    if node.logical == "uuid" and node.kind == "string":
        return read_string
    make = _MADE_OF_BYTES.get(node.logical, _base64)
    size = node.size

    def read(data: bytes, at: int) -> tuple[str, int]:
        value, at = cut(data, at, size) if node.kind == "fixed" else block(data, at)
        return make(node, value), at

    return read


def _base64(_node: Node, value: bytes) -> str:
    return json_text.binary(value)


def _decimal(node: Node, value: bytes) -> str:
    unscaled = int.from_bytes(value[-512:], "big", signed=True)
    # What lies before is but the sign: otherwise there are too many digits anyway.
    if abs(unscaled) >= 10**node.precision or value[:-512].strip(b"\xff" if unscaled < 0 else b"\0"):
        raise invalid(f"a decimal has more than its {node.precision} digits")
    return json_text.decimal(unscaled, node.scale)


def _uuid(_node: Node, value: bytes) -> str:
    return f'"{UUID(bytes=value)}"'


def _duration(_node: Node, value: bytes) -> str:
    months, days, millis = struct.unpack("<III", value)
    return f'{{"months":{months},"days":{days},"milliseconds":{millis}}}'


_MADE_OF_BYTES: dict[str, Callable[[Node, bytes], str]] = {"decimal": _decimal, "uuid": _uuid, "duration": _duration}


def _times(take: Callable[[bytes, int], tuple[int, int]], logical: str) -> Reader:
    """A number that stands for a time; one that is out of range stays a number."""
    write, unit = _UNITS[logical]

    def text(value: int) -> str:
        return write(value * unit if unit > 0 else value // -unit) or str(value)

    return _numbers(take, text)


def _numbers(take: Callable[[bytes, int], tuple[int, int]], text: Callable[[int], str]) -> Reader:
    def read(data: bytes, at: int) -> tuple[str, int]:
        value, at = take(data, at)
        return text(value), at

    return read
