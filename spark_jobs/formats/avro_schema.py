"""Avro schemas: from JSON to nodes with their names resolved.

Source: `Avro specification <https://avro.apache.org/docs/1.12.0/specification/>`_.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from spark_jobs.formats.schema import Schema

PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
_LOGICAL = {
    "int": {"date", "time-millis"},
    "long": {
        *("time-micros", "timestamp-millis", "timestamp-micros", "timestamp-nanos"),
        *("local-timestamp-millis", "local-timestamp-micros", "local-timestamp-nanos"),
    },
    "string": {"uuid"},
    "fixed": {"decimal", "uuid", "duration"},
    "bytes": {"decimal"},
}
_UUID_BYTES, _DURATION_BYTES = 16, 12
_MOST_DIGITS = 1000
"""Of a decimal: more have no use, and would take long to convert."""


class SchemaError(ValueError):
    """Raised when a text is no Avro schema; the text says why."""


@dataclass(eq=False)
class AvroField:
    """A field of a record; ``default`` is JSON, if ``has_default``."""

    name: str
    node: "Node"
    aliases: frozenset[str] = frozenset()
    has_default: bool = False
    default: Any = None


@dataclass(eq=False)
class Node:
    """A schema. ``kind`` says which of the other attributes mean something.

    Attributes:
        kind: a primitive type, or ``record``, ``enum``, ``fixed``, ``array``, ``map``, ``union``.
        name: full name of a record, enum or fixed.
        items: of an array or a map.
        logical: its logical type, if it has a valid one that is known.
    """

    kind: str
    name: str = ""
    aliases: frozenset[str] = frozenset()
    fields: list[AvroField] = field(default_factory=list)
    symbols: list[str] = field(default_factory=list)
    default_symbol: str | None = None
    size: int = 0
    items: "Node | None" = None
    branches: list["Node"] = field(default_factory=list)
    logical: str = ""
    precision: int = 0
    scale: int = 0

    @property
    def short_name(self) -> str:
        """The name without its namespace, or the kind."""
        return self.name.rpartition(".")[2] or self.kind

    @property
    def inner(self) -> "Node":
        """The type of the items of an array or a map."""
        assert self.items is not None  # noqa: S101 the parser sets it
        return self.items


def parse_schema(schema: Schema) -> Node:
    """The node of a schema; its imports define names that it may use.

    Raises:
        SchemaError: it is not an Avro schema.
    """
    parser = _Parser()
    try:
        for name, text in schema.imports:
            parser.parse_text(text, f"import {name}")
        return parser.parse_text(schema.text, schema.name)
    except RecursionError:
        raise SchemaError(f"{schema.name} is nested too deep") from None


class _Parser:
    """Knows the named types that were defined so far."""

    def __init__(self) -> None:
        self._names: dict[str, Node] = {}

    def parse_text(self, text: str, what: str) -> Node:
        try:
            return self._parse(json.loads(text), "")
        except json.JSONDecodeError as error:
            # A registry may keep a primitive schema as its bare name.
            if text.strip() in PRIMITIVES:
                return Node(text.strip())
            raise SchemaError(f"{what} is not JSON: {error}") from None
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise SchemaError(f"{what} is not an Avro schema: {type(error).__name__} {error}") from None

    def _parse(self, content: Any, space: str) -> Node:  # noqa: PLR0911 one for each form that a schema has
        if isinstance(content, str):
            return self._named(content, space)
        if isinstance(content, list):
            return Node("union", branches=[self._parse(one, space) for one in content])
        kind = content["type"]
        if not isinstance(kind, str):
            return self._parse(kind, space)
        if kind in ("array", "map"):
            return Node(kind, items=self._parse(content["items" if kind == "array" else "values"], space))
        if kind in ("record", "error", "enum", "fixed"):
            return self._define(content, kind, space)
        if kind not in PRIMITIVES:
            return self._named(kind, space)
        return _with_logical(Node(kind), content)

    def _named(self, name: str, space: str) -> Node:
        if name in PRIMITIVES:
            return Node(name)
        full = _full(name, space)
        if found := self._names.get(full) or self._names.get(name):
            return found
        raise SchemaError(f"no type {full} is defined")

    def _define(self, content: dict[str, Any], kind: str, space: str) -> Node:
        own_space = content.get("namespace", space) or ""
        name = _full(content["name"], own_space)
        space = name.rpartition(".")[0]
        aliases = frozenset(_full(alias, space) for alias in content.get("aliases", ()))
        node = Node("record" if kind == "error" else kind, name=name, aliases=aliases)
        if name in self._names:
            raise SchemaError(f"type {name} is defined twice")
        self._names[name] = node
        if kind == "enum":
            node.symbols = [_text(symbol) for symbol in content["symbols"]]
            node.default_symbol = content.get("default")
        elif kind == "fixed":
            node.size = int(content["size"])
            if node.size < 0:
                raise SchemaError(f"fixed {name} has the size {node.size}")
            _with_logical(node, content)
        else:
            node.fields = [self._field(one, space) for one in content["fields"]]
        return node

    def _field(self, content: dict[str, Any], space: str) -> AvroField:
        node = self._parse(content["type"], space)
        # Some writers put the logical type next to the type instead of into it.
        if isinstance(content["type"], str) and content["type"] in PRIMITIVES:
            node = _with_logical(node, content)
        aliases = frozenset(map(_text, content.get("aliases") or ()))
        return AvroField(_text(content["name"]), node, aliases, "default" in content, content.get("default"))


def _with_logical(node: Node, content: dict[str, Any]) -> Node:
    """Sets the logical type if it fits; an invalid or unknown one is to be ignored."""
    logical = content.get("logicalType")
    if logical not in _LOGICAL.get(node.kind, ()):
        return node
    if logical == "decimal":
        precision, scale = content.get("precision"), content.get("scale", 0)
        if not (
            isinstance(precision, int)
            and isinstance(scale, int)
            and 0 <= scale <= precision <= _MOST_DIGITS
            and precision
        ):
            return node
        node.precision, node.scale = precision, scale
    wanted = {"uuid": _UUID_BYTES, "duration": _DURATION_BYTES}.get(str(logical), node.size)
    if node.kind != "fixed" or node.size == wanted:
        node.logical = str(logical)
    return node


def can_be_empty(node: Node, seen: Iterable[Node] = ()) -> bool:
    """Whether a value can take no bytes at all."""
    if node in (above := tuple(seen)):
        return False
    if node.kind == "record":
        return all(can_be_empty(one.node, (*above, node)) for one in node.fields)
    return node.kind == "null" or (node.kind == "fixed" and not node.size)


def _full(name: Any, space: str) -> str:
    text = _text(name)
    return text if "." in text or not space else f"{space}.{text}"


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise SchemaError(f"{value!r} is not a name")
    return value
