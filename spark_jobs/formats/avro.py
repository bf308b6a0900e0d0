"""Decodes Avro by the writer's schema, or by a reader's schema that resolves it.

Readers of values are built once per pair of schemas, so decoding follows no schema. A value is turned to JSON text
directly: the branch of a union is known there, and with it the logical type.

Source: `Avro specification, "Schema Resolution" <https://avro.apache.org/docs/1.12.0/specification/>`_.
"""

import struct
from collections.abc import Callable

from spark_jobs.formats import json_text
from spark_jobs.formats.avro_binary import Reader, integer, read_string, value_reader
from spark_jobs.formats.avro_matching import (
    Mismatch,
    best_branch,
    can_be_promoted,
    default_text,
    described,
    enum_reader,
    matches,
)
from spark_jobs.formats.avro_schema import Node, can_be_empty
from spark_jobs.formats.refusal import incompatible, invalid

_MOST_DEPTH = 100
"""Of records within records of the same type."""
_MOST_EMPTY = 10_000
"""Items of a value that take no bytes: a few bytes could claim any number of them."""


class AvroReader:
    """Turns Avro values of one writer's schema to JSON text."""

    def __init__(self, writer: Node, reader: Node | None = None) -> None:
        """Builds the readers.

        Args:
            writer: the schema that the values were written with.
            reader: the schema to read them as; None: the writer's own.

        Raises:
            Refused: with ``incompatible_schema``: the reader's schema does not resolve the writer's.
        """
        self._depth = self._empty = 0
        self._known: dict[tuple[Node, Node], list[Reader]] = {}
        try:
            self._read = self._build(writer, reader or writer)
        except Mismatch as mismatch:
            raise incompatible(str(mismatch)) from None
        except RecursionError:
            raise incompatible("the schema is nested too deep") from None

    def decode(self, data: bytes, at: int = 0) -> str:
        """The JSON text of the value that begins at ``at`` and ends with ``data``.

        Raises:
            Refused: the bytes do not fit the schema.
        """
        text, end = self.decode_next(data, at)
        if end != len(data):
            raise invalid(f"{len(data) - end} bytes follow the value, which ends at byte {end}")
        return text

    def decode_next(self, data: bytes, at: int) -> tuple[str, int]:
        """Like :meth:`decode`, but more values may follow: the text, and where the value ends."""
        self._depth = self._empty = 0
        try:
            return self._read(data, at)
        except (IndexError, struct.error):
            raise invalid(f"the value ends early, after {len(data) - at} bytes") from None
        except UnicodeDecodeError as error:
            raise invalid(f"a string is not UTF-8: {error.reason}") from None
        except RecursionError:
            raise invalid("the value is nested too deep") from None

    def _build(self, writer: Node, reader: Node) -> Reader:
        if writer.kind == "union":
            return self._union(writer, reader)
        if reader.kind == "union":
            return self._build(writer, best_branch(writer, reader))
        if not matches(writer, reader) and not can_be_promoted(writer, reader):
            raise Mismatch(f"{described(writer)} cannot be read as {described(reader)}")
        makers = {"array": self._array, "map": self._map, "record": self._record, "enum": enum_reader}
        if make := makers.get(writer.kind):
            return make(writer, reader)
        if writer.logical == reader.logical == "decimal" and writer.scale != reader.scale:
            raise Mismatch(f"a decimal with scale {writer.scale} cannot be read as one with scale {reader.scale}")
        return value_reader(writer.kind, reader)

    def _union(self, writer: Node, reader: Node) -> Reader:
        readers: list[Reader] = []
        reasons: list[str] = []
        for branch in writer.branches:
            try:
                readers.append(self._build(branch, branch if writer is reader else reader))
            except Mismatch as mismatch:
                reasons.append(str(mismatch))
                readers.append(_refusing(str(mismatch)))
        # Of an optional field a reader may want no null: that is known only when one comes.
        if len(reasons) == len(readers) and readers:
            raise Mismatch(reasons[0])
        count = len(readers)

        def read(data: bytes, at: int) -> tuple[str, int]:
            branch = data[at]
            if branch < 0x80:  # noqa: PLR2004 one byte
                branch, at = (branch >> 1) ^ -(branch & 1), at + 1
            else:
                branch, at = integer(data, at)
            if not 0 <= branch < count:
                raise invalid(f"branch {branch} of a union of {count} before byte {at}")
            return readers[branch](data, at)

        return read

    def _items(self, writer: Node) -> Callable[[bytes, int, Callable[[bytes, int], int]], int]:
        """The reader of the blocks of an array or a map, item by item."""
        is_empty = writer.kind == "array" and can_be_empty(writer.inner)

        def take(data: bytes, at: int, item: Callable[[bytes, int], int]) -> int:
            while True:
                count, at = integer(data, at)
                if not count:
                    return at
                if count < 0:
                    count = -count
                    _, at = integer(data, at)
                if is_empty:
                    self._empty += count
                    if self._empty > _MOST_EMPTY:
                        raise invalid(f"more than {_MOST_EMPTY} items that take no bytes")
                elif count > len(data) - at:
                    raise IndexError
                for _ in range(count):
                    at = item(data, at)

        return take

    def _array(self, writer: Node, reader: Node) -> Reader:
        read_item, take = self._build(writer.inner, reader.inner), self._items(writer)

        def read(data: bytes, at: int) -> tuple[str, int]:
            texts: list[str] = []

            def item(data: bytes, at: int) -> int:
                text, at = read_item(data, at)
                texts.append(text)
                return at

            at = take(data, at, item)
            return json_text.array(texts), at

        return read

    def _map(self, writer: Node, reader: Node) -> Reader:
        read_value, take = self._build(writer.inner, reader.inner), self._items(writer)

        def read(data: bytes, at: int) -> tuple[str, int]:
            # Of equal keys the last wins: JSON must not have both.
            texts: dict[str, str] = {}

            def item(data: bytes, at: int) -> int:
                key, at = read_string(data, at)
                texts[key], at = read_value(data, at)
                return at

            at = take(data, at, item)
            return f"{{{','.join(f'{key}:{text}' for key, text in texts.items())}}}", at

        return read

    def _record(self, writer: Node, reader: Node) -> Reader:
        key = (writer, reader)
        if key in self._known:
            return self._again(self._known[key])
        made: list[Reader] = []
        self._known[key] = made
        try:
            steps, rest = self._steps(writer, reader)
        except Mismatch:
            del self._known[key]
            raise

        def read(data: bytes, at: int) -> tuple[str, int]:
            parts = []
            for prefix, read_field in steps:
                text, at = read_field(data, at)
                if prefix:
                    parts.append(prefix + text)
            return f"{{{','.join(parts)}{rest if parts else rest[1:]}}}", at

        made.append(read)
        return read

    def _again(self, made: list[Reader]) -> Reader:
        """A record of a type that is known already, perhaps within itself."""

        def read(data: bytes, at: int) -> tuple[str, int]:
            self._depth += 1
            if self._depth > _MOST_DEPTH:
                raise invalid(f"more than {_MOST_DEPTH} records within each other")
            found = made[0](data, at)
            self._depth -= 1
            return found

        return read

    def _steps(self, writer: Node, reader: Node) -> tuple[list[tuple[str, Reader]], str]:
        """For each field of the writer its key, empty if the reader has no such field; and the text of the others."""
        wanted = {}
        for one in reader.fields:
            names = [name for name in (one.name, *sorted(one.aliases)) if any(f.name == name for f in writer.fields)]
            if names:
                wanted[names[0]] = one
        steps: list[tuple[str, Reader]] = []
        for written in writer.fields:
            found = wanted.get(written.name)
            try:
                read = self._build(written.node, found.node if found else written.node)
            except Mismatch as mismatch:
                raise Mismatch(f"{writer.short_name}.{written.name}: {mismatch}") from None
            steps.append((f"{json_text.quoted(found.name)}:" if found else "", read))
        taken = [id(one) for one in wanted.values()]
        rest = ""
        for one in reader.fields:
            if id(one) in taken:
                continue
            if not one.has_default:
                raise Mismatch(f"{reader.short_name}.{one.name} is not in the writer's schema and has no default")
            rest += f",{json_text.quoted(one.name)}:{default_text(one.node, one.default)}"
        return steps, rest


def _refusing(reason: str) -> Reader:
    def refuse(_data: bytes, _at: int) -> tuple[str, int]:
        raise incompatible(reason)

    return refuse
