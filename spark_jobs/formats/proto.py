"""Protobuf messages as JSON text.

Keys are the fields' names as in the .proto file. A field without presence (in proto3 a plain scalar, a repeated field
or a map) is always there, with its default if it was not sent: that is what the producer wrote, and zero, false and ""
are not sent at all. A field with presence (``optional``, a message, a member of a ``oneof``) is there only if it was
set. Unknown fields are left out.

Timestamps are RFC 3339 text; a Duration is text in seconds, as in ``"1.5s"``; a wrapper is its value; Struct, Value and
ListValue are the JSON that they hold.
"""

from collections.abc import Callable
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError

from spark_jobs.formats import json_text
from spark_jobs.formats.proto_schema import message_class
from spark_jobs.formats.refusal import invalid

Writer = Callable[[Any], str]
_SECOND_US, _SECOND_NS = 1_000_000, 1_000_000_000


class ProtoReader:
    """Turns Protobuf values of one message type to JSON text."""

    def __init__(self, descriptor: Descriptor) -> None:
        self._class = message_class(descriptor)
        self._name = descriptor.full_name
        self._write = _MessageWriter(descriptor, {})

    def decode(self, data: bytes, at: int = 0) -> str:
        """The JSON text of the message whose bytes begin at ``at``.

        Raises:
            Refused: the bytes are no such message.
        """
        message = self._class()
        try:
            message.ParseFromString(data[at:] if at else data)
            if not message.IsInitialized():
                raise invalid(f"the message {self._name} lacks required fields")
            return self._write(message)
        except DecodeError:
            raise invalid(f"the {len(data) - at} bytes are no message {self._name}") from None
        except RecursionError:
            raise invalid(f"the message {self._name} is nested too deep") from None


class _MessageWriter:
    """Writes messages of one type; it knows itself, for messages within themselves."""

    def __init__(self, descriptor: Descriptor, known: dict[str, "_MessageWriter"]) -> None:
        known[descriptor.full_name] = self
        self._special = _SPECIAL.get(descriptor.full_name)
        self._fields: list[tuple[str, str, bool, Writer]] = []
        if not self._special:
            for field in descriptor.fields:
                write = _field_writer(field, known)
                self._fields.append((field.name, f"{json_text.quoted(field.name)}:", field.has_presence, write))

    def __call__(self, message: Any) -> str:
        if self._special:
            return self._special(message)
        parts = [
            key + write(getattr(message, name))
            for name, key, has_presence, write in self._fields
            if not has_presence or message.HasField(name)
        ]
        return f"{{{','.join(parts)}}}"


def _field_writer(field: FieldDescriptor, known: dict[str, _MessageWriter]) -> Writer:
    if not field.is_repeated:
        return _value_writer(field, known)
    entry = field.message_type
    if entry is None or not entry.GetOptions().map_entry:
        write = _value_writer(field, known)
        return lambda values: json_text.array(map(write, values))
    key = _KEYS.get(entry.fields_by_name["key"].cpp_type, str)
    write = _value_writer(entry.fields_by_name["value"], known)
    # Protobuf keeps no order of a map's entries.
    return lambda values: json_text.table(sorted((key(name), write(values[name])) for name in values))


def _value_writer(field: FieldDescriptor, known: dict[str, _MessageWriter]) -> Writer:
    if field.message_type is not None:
        name = field.message_type.full_name
        return known[name] if name in known else _MessageWriter(field.message_type, known)
    if field.enum_type is not None:
        symbols = {value.number: json_text.quoted(value.name) for value in reversed(field.enum_type.values)}
        return lambda value: symbols.get(value) or str(value)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return json_text.binary
    return _SCALARS.get(field.cpp_type, str)


def _text(value: Any) -> str:
    """A string; of proto2 Protobuf does not check it, and gives bytes where it is not UTF-8."""
    if isinstance(value, bytes):
        raise invalid("a string is not UTF-8")
    return str(value)


_KEYS: dict[int, Writer] = {
    FieldDescriptor.CPPTYPE_STRING: _text,
    FieldDescriptor.CPPTYPE_BOOL: lambda value: "true" if value else "false",
}
_SCALARS: dict[int, Writer] = {
    FieldDescriptor.CPPTYPE_STRING: lambda value: json_text.quoted(_text(value)),
    FieldDescriptor.CPPTYPE_BOOL: lambda value: "true" if value else "false",
    FieldDescriptor.CPPTYPE_FLOAT: json_text.number,
    FieldDescriptor.CPPTYPE_DOUBLE: json_text.number,
}


def _timestamp(message: Any) -> str:
    is_whole = 0 <= message.nanos < _SECOND_NS
    text = json_text.instant(message.seconds * _SECOND_US + message.nanos // 1000) if is_whole else None
    return text or f'{{"seconds":{message.seconds},"nanos":{message.nanos}}}'


def _duration(message: Any) -> str:
    total = message.seconds * _SECOND_NS + message.nanos
    whole, rest = divmod(abs(total), _SECOND_NS)
    fraction = f".{rest:09}".rstrip("0") if rest else ""
    return f'"{"-" if total < 0 else ""}{whole}{fraction}s"'


def _value(message: Any) -> str:
    kind = message.WhichOneof("kind")
    if kind in (None, "null_value"):
        return json_text.NULL
    return _VALUES[kind](getattr(message, kind))


def _struct(message: Any) -> str:
    return json_text.table(sorted((name, _value(message.fields[name])) for name in message.fields))


def _list(message: Any) -> str:
    return json_text.array(map(_value, message.values))


_VALUES: dict[str, Writer] = {
    "number_value": json_text.number,
    "string_value": json_text.quoted,
    "bool_value": _SCALARS[FieldDescriptor.CPPTYPE_BOOL],
    "struct_value": _struct,
    "list_value": _list,
}
_WRAPPERS: dict[str, Writer] = {
    "Double": json_text.number,
    "Float": json_text.number,
    **dict.fromkeys(("Int64", "UInt64", "Int32", "UInt32"), str),
    "Bool": _SCALARS[FieldDescriptor.CPPTYPE_BOOL],
    "String": json_text.quoted,
    "Bytes": json_text.binary,
}


def _wrapper(write: Writer) -> Writer:
    return lambda message: write(message.value)


_SPECIAL: dict[str, Writer] = {
    "google.protobuf.Timestamp": _timestamp,
    "google.protobuf.Duration": _duration,
    "google.protobuf.Value": _value,
    "google.protobuf.Struct": _struct,
    "google.protobuf.ListValue": _list,
    "google.protobuf.FieldMask": lambda message: json_text.quoted(",".join(message.paths)),
    **{f"google.protobuf.{name}Value": _wrapper(write) for name, write in _WRAPPERS.items()},
}
