"""Which parts of a writer's and a reader's Avro schema belong together, and what stands in for missing ones."""

import struct
from typing import Any

from spark_jobs.formats import json_text
from spark_jobs.formats.avro_binary import Reader, integer, small_integer, value_reader
from spark_jobs.formats.avro_schema import PRIMITIVES, Node
from spark_jobs.formats.refusal import Refused, incompatible, invalid

_PROMOTIONS = {
    ("int", "long"),
    ("int", "float"),
    ("int", "double"),
    ("long", "float"),
    ("long", "double"),
    ("float", "double"),
    ("string", "bytes"),
    ("bytes", "string"),
}


class Mismatch(Exception):  # noqa: N818 it is no error where another branch of a union fits
    """Raised when a writer's schema cannot be read as the reader's; the text says which part and why."""


def default_text(node: Node, value: Any) -> str:
    """The JSON text of a default, as of a value that was written.

    Raises:
        Mismatch: the default does not fit its schema.
    """
    if node.kind == "union":
        # Before Avro 1.12 a default is of the first branch; now it may be of any.
        for branch in node.branches:
            try:
                return default_text(branch, value)
            except Mismatch:
                continue
        raise Mismatch(f"the default {value!r} fits no branch of its union")
    try:
        if node.kind == "record":
            fields = ((one, value.get(one.name, one.default)) for one in node.fields)
            return json_text.table((one.name, default_text(one.node, given)) for one, given in fields)
        if node.kind == "array":
            return json_text.array(default_text(node.inner, item) for item in value)
        if node.kind == "map":
            return json_text.table((name, default_text(node.inner, item)) for name, item in value.items())
        if node.kind == "enum":
            return json_text.quoted(value)
        return value_reader(node.kind, node)(_encoded(node, value), 0)[0]
    except (AttributeError, TypeError, ValueError, IndexError, struct.error, Refused):
        raise Mismatch(f"the default {value!r} is not of the type {described(node)}") from None


_DEFAULT_TYPES: dict[str, tuple[type, ...]] = {
    "null": (type(None),),
    "boolean": (bool,),
    "int": (int,),
    "long": (int,),
    "float": (int, float),
    "double": (int, float),
}


def _encoded(node: Node, value: Any) -> bytes:
    """A default of a primitive or fixed type in Avro's encoding."""
    if not _fits(node, value):
        raise TypeError
    if node.kind in ("int", "long"):
        number = _zigzag(value)
        (small_integer if node.kind == "int" else integer)(number, 0)
        return number
    if node.kind in ("float", "double"):
        return struct.pack("<f" if node.kind == "float" else "<d", value)
    if node.kind in ("null", "boolean"):
        return b"" if value is None else bytes([value])
    text: bytes = value.encode("utf-8" if node.kind == "string" else "iso-8859-1")
    return text if node.kind == "fixed" else _zigzag(len(text)) + text


def _fits(node: Node, value: object) -> bool:
    is_of_type = isinstance(value, _DEFAULT_TYPES.get(node.kind, (str,)))
    return is_of_type and (node.kind == "boolean" or not isinstance(value, bool))


def _zigzag(value: int) -> bytes:
    rest, taken = (value << 1) ^ (value >> 63), bytearray()
    while rest > 0x7F:  # noqa: PLR2004 seven bits
        taken.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*taken, rest])


def best_branch(writer: Node, reader: Node) -> Node:
    """The branch of the reader's union that takes a value of ``writer``: of its very type, else the first that can.

    Raises:
        Mismatch: nothing fits.
    """
    exact = [branch for branch in reader.branches if matches(writer, branch)]
    same_logical = [branch for branch in exact if branch.logical == writer.logical and branch.name == writer.name]
    promoted = [branch for branch in reader.branches if can_be_promoted(writer, branch)]
    for branch in (*same_logical, *exact, *promoted):
        return branch
    raise Mismatch(f"{described(writer)} is not in the reader's union")


def can_be_promoted(writer: Node, reader: Node) -> bool:
    """Whether each value of ``writer`` is one of ``reader`` too."""
    return (writer.kind, reader.kind) in _PROMOTIONS


def matches(writer: Node, reader: Node) -> bool:
    """Whether both are of the same kind and, if they have one, name."""
    if writer.kind != reader.kind:
        return False
    if writer.kind in PRIMITIVES or writer.kind in ("array", "map"):
        return True
    names = {reader.short_name, *(alias.rpartition(".")[2] for alias in reader.aliases)}
    return writer.short_name in names and writer.size == reader.size


def enum_reader(writer: Node, reader: Node) -> Reader:
    """The translation of symbols of ``writer`` to those of ``reader``."""
    known = set(reader.symbols)
    texts = [
        json_text.quoted(symbol)
        if symbol in known
        else reader.default_symbol and json_text.quoted(reader.default_symbol)
        for symbol in writer.symbols
    ]
    count = len(texts)

    def read(data: bytes, at: int) -> tuple[str, int]:
        index, end = integer(data, at)
        if not 0 <= index < count:
            raise invalid(f"symbol {index} of the enum {writer.short_name}, which has {count}, at byte {at}")
        text = texts[index]
        if text is None:
            raise incompatible(f"the reader's enum {reader.short_name} has no symbol {writer.symbols[index]}")
        return text, end

    return read


def described(node: Node) -> str:
    """A schema, for people."""
    return f"{node.kind} {node.name}" if node.name else node.kind
