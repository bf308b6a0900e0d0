"""Avro by hand: bytes, and the JSON text that they must give."""

import json
import struct
from typing import Any

import pytest

from spark_jobs.errors import SettingsError
from spark_jobs.formats.avro import AvroReader
from spark_jobs.formats.avro_schema import parse_schema
from spark_jobs.formats.decoding import decoder
from spark_jobs.formats.refusal import Refused
from spark_jobs.formats.schema import AVRO, Schema


def _logical(kind: str, logical: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": logical, **more}


def _schema(content: Any) -> Schema:
    return Schema(AVRO, json.dumps(content))


def _text(writer: Any, value: bytes, reader: Any = None) -> str:
    read = parse_schema(_schema(reader)) if reader is not None else None
    return AvroReader(parse_schema(_schema(writer)), read).decode(value)


_LAST_LONG = b"\xfe" + b"\xff" * 8 + b"\x01"
_FIRST_LONG = b"\xff" * 9 + b"\x01"
_FIXED = {"type": "fixed", "name": "F", "size": 2}
_TIME_AND_DATE = [_logical("int", "date"), _logical("long", "timestamp-millis")]


@pytest.mark.parametrize(
    ("schema", "value", "text"),
    [
        ("null", b"", "null"),
        ("boolean", b"\x01", "true"),
        ("int", b"\x01", "-1"),
        ("long", b"\x80\x01", "64"),
        ("long", _LAST_LONG, "9223372036854775807"),
        ("long", _FIRST_LONG, "-9223372036854775808"),
        ("float", struct.pack("<f", 1.5), "1.5"),
        ("double", struct.pack("<d", 0.1), "0.1"),
        ("double", struct.pack("<d", float("nan")), '"NaN"'),
        ("double", struct.pack("<d", float("-inf")), '"-Infinity"'),
        ("string", b'\x06a"\n', r'"a\"\n"'),
        ("string", "\x06ü!".encode(), '"ü!"'),
        ("bytes", b"\x06\x00\xff\x10", '"AP8Q"'),
        (_FIXED, b"\x01\x02", '"AQI="'),
        (_logical("bytes", "decimal", precision=9, scale=6), b"\x04\x08\x34", '"0.002100"'),
        (_logical("bytes", "decimal", precision=4, scale=2), b"\x02\xff", '"-0.01"'),
        (_logical("bytes", "decimal", precision=4), b"\x02\x2a", '"42"'),
        ({**_FIXED, "logicalType": "decimal", "precision": 4, "scale": 4}, b"\xff\xfe", '"-0.0002"'),
        (_logical("int", "date"), b"\x00", '"1970-01-01"'),
        (_logical("int", "date"), b"\x01", '"1969-12-31"'),
        (_logical("int", "time-millis"), b"\x02", '"00:00:00.001000"'),
        (_logical("long", "timestamp-millis"), b"\x01", '"1969-12-31T23:59:59.999000Z"'),
        (_logical("long", "timestamp-micros"), b"\x02", '"1970-01-01T00:00:00.000001Z"'),
        (_logical("long", "timestamp-nanos"), b"\xce\x0f", '"1970-01-01T00:00:00Z"'),
        (_logical("long", "timestamp-nanos"), b"\xd0\x0f", '"1970-01-01T00:00:00.000001Z"'),
        (_logical("long", "local-timestamp-millis"), b"\x00", '"1970-01-01T00:00:00"'),
        # Out of the years 1 to 9999 the number stays.
        (_logical("long", "timestamp-micros"), _LAST_LONG, "9223372036854775807"),
        (_logical("long", "time-micros"), b"\x01", "-1"),
        # A logical type that is unknown or does not fit is to be ignored.
        (_logical("string", "timestamp-millis"), b"\x02a", '"a"'),
        (_logical("bytes", "decimal", precision=0), b"\x02\x2a", '"Kg=="'),
        (
            {"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"},
            bytes(range(16)),
            '"00010203-0405-0607-0809-0a0b0c0d0e0f"',
        ),
        (
            {"type": "fixed", "name": "D", "size": 12, "logicalType": "duration"},
            struct.pack("<III", 1, 2, 3),
            '{"months":1,"days":2,"milliseconds":3}',
        ),
        ({"type": "enum", "name": "E", "symbols": ["X", "Y"]}, b"\x02", '"Y"'),
        ({"type": "array", "items": "int"}, b"\x04\x02\x04\x00", "[1,2]"),
        ({"type": "array", "items": "int"}, b"\x03\x04\x02\x04\x02\x06\x00", "[1,2,3]"),
        ({"type": "array", "items": "null"}, b"\x06\x00", "[null,null,null]"),
        ({"type": "map", "values": "int"}, b"\x04\x02a\x02\x02a\x04\x00", '{"a":2}'),
        (["null", "string"], b"\x00", "null"),
        (["null", "string"], b"\x02\x02a", '"a"'),
        # Only the branch tells a date from a time.
        (_TIME_AND_DATE, b"\x00\x00", '"1970-01-01"'),
        (_TIME_AND_DATE, b"\x02\x00", '"1970-01-01T00:00:00Z"'),
        ({"type": "record", "name": "R", "fields": []}, b"", "{}"),
    ],
)
def test_a_value_is_shown_as(schema: Any, value: bytes, text: str) -> None:
    assert _text(schema, value) == text


_LIST = {
    "type": "record",
    "name": "List",
    "namespace": "a",
    "fields": [{"name": "v", "type": "int"}, {"name": "next", "type": ["null", "a.List"]}],
}


def test_a_type_within_itself() -> None:
    assert _text(_LIST, b"\x02\x02\x04\x00") == '{"v":1,"next":{"v":2,"next":null}}'
    assert json.loads(_text(_LIST, b"\x02\x02" * 100 + b"\x02\x00"))["v"] == 1
    with pytest.raises(Refused, match="100 records within each other"):
        _text(_LIST, b"\x02\x02" * 100_000 + b"\x02\x00")
    assert _text({"type": "array", "items": _LIST}, b"\x02\x02\x00\x00") == '[{"v":1,"next":null}]'


@pytest.mark.parametrize(
    ("schema", "value", "reason"),
    [
        ("int", b"", "ends early"),
        ("long", b"\x80", "ends early"),
        ("long", b"\xff" * 10 + b"\x01", "more than 64 bits"),
        ("long", b"\xff" * 9 + b"\x03", "more than 64 bits"),
        ("int", b"\x80\x80\x80\x80\x10", "more than 32 bits"),
        ("float", b"\0\0\0", "ends early"),
        ("string", b"\x06ab", "ends early"),
        ("string", b"\xfe\xff\xff\xff\xff\x0fab", "ends early"),
        ("string", b"\x01", "negative"),
        ("string", b"\x02\xff", "not UTF-8"),
        ("string", b"\x06\xed\xa0\x80", "not UTF-8"),
        ("boolean", b"\x02", "boolean"),
        ("int", b"\x02\x02", "1 bytes follow"),
        (["null", "int"], b"\x04", "branch 2 of a union of 2"),
        (["null", "int"], b"\x01", "branch -1"),
        ({"type": "enum", "name": "E", "symbols": ["X"]}, b"\x02", "symbol 1 of the enum E"),
        ({"type": "array", "items": "int"}, _LAST_LONG, "ends early"),
        ({"type": "array", "items": "null"}, _LAST_LONG, "items that take no bytes"),
        (
            {"type": "array", "items": {"type": "array", "items": "null"}},
            b"\x04" + (b"\xa0\x9c\x01\x00") * 2 + b"\0",
            "no",
        ),
        (_logical("bytes", "decimal", precision=2), b"\x02\x64", "more than its 2 digits"),
        (_logical("bytes", "decimal", precision=2), b"\x80\x10" + b"\x7f" * 1024, "more than its 2 digits"),
    ],
)
def test_bytes_that_do_not_fit_get_a_verdict(schema: Any, value: bytes, reason: str) -> None:
    with pytest.raises(Refused, match=reason) as refused:
        _text(schema, value)
    assert refused.value.verdict == "invalid_encoding"


def _record(*fields: dict[str, Any], name: str = "R", **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields), **more}


_A_INT = {"name": "a", "type": "int"}
_XY = {"type": "enum", "name": "E", "symbols": ["X", "Y"]}


@pytest.mark.parametrize(
    ("writer", "reader", "value", "text"),
    [
        ("int", "double", b"\x04", "2.0"),
        ("int", "long", b"\x04", "2"),
        ("float", "double", struct.pack("<f", 0.5), "0.5"),
        ("string", "bytes", b"\x02a", '"YQ=="'),
        ("bytes", "string", b"\x02a", '"a"'),
        ("long", _logical("long", "timestamp-millis"), b"\x00", '"1970-01-01T00:00:00Z"'),
        (_logical("long", "timestamp-millis"), "long", b"\x02", "1"),
        ("int", ["null", "string", "long"], b"\x04", "2"),
        (["null", "int"], "int", b"\x02\x04", "2"),
        (_record(_A_INT, {"name": "b", "type": "string"}), _record(_A_INT), b"\x02\x02x", '{"a":1}'),
        (_record({"name": "b", "type": "string"}, _A_INT), _record(_A_INT), b"\x02x\x02", '{"a":1}'),
        (
            _record(_A_INT),
            _record(
                {"name": "n", "type": ["null", "int"], "default": None}, {"name": "b", "type": "long", "aliases": ["a"]}
            ),
            b"\x02",
            '{"b":1,"n":null}',
        ),
        (_record(), _record({**_A_INT, "default": 7}), b"", '{"a":7}'),
        (
            _record(),
            _record(
                {"name": "t", "type": _logical("long", "timestamp-millis"), "default": 1},
                {"name": "y", "type": "bytes", "default": "\u00ff"},
                {"name": "l", "type": {"type": "array", "items": "int"}, "default": [1]},
                {"name": "r", "type": _record({**_A_INT, "default": 3}, name="Q"), "default": {}},
            ),
            b"",
            '{"t":"1970-01-01T00:00:00.001000Z","y":"/w==","l":[1],"r":{"a":3}}',
        ),
        (_record(_A_INT, name="x.Old"), _record(_A_INT, name="x.New", aliases=["Old"]), b"\x02", '{"a":1}'),
        (_XY, {"type": "enum", "name": "E", "symbols": ["Y", "Z"], "default": "Z"}, b"\x00", '"Z"'),
        (_XY, {"type": "enum", "name": "E", "symbols": ["Y", "Z"], "default": "Z"}, b"\x02", '"Y"'),
    ],
)
def test_a_reader_schema_resolves_the_writers(writer: Any, reader: Any, value: bytes, text: str) -> None:
    assert _text(writer, value, reader) == text


@pytest.mark.parametrize(
    ("writer", "reader", "value", "reason"),
    [
        ("string", "int", b"\x02a", "string cannot be read as int"),
        ("long", "int", b"\x02", "long cannot be read as int"),
        (_record(), _record(_A_INT), b"", r"R\.a is not in the writer's schema and has no default"),
        (_record(_A_INT), _record({"name": "a", "type": "string"}), b"\x02", r"R\.a: int cannot be read as string"),
        (_record(_A_INT), _record(_A_INT, name="Q"), b"\x02", "record R cannot be read as record Q"),
        (["null", "int"], "int", b"\x00", "null cannot be read as int"),
        (_XY, {"type": "enum", "name": "E", "symbols": ["Y"]}, b"\x00", "has no symbol X"),
        ("int", ["null", "string"], b"\x00", "int is not in the reader's union"),
        (
            _logical("bytes", "decimal", precision=4, scale=1),
            _logical("bytes", "decimal", precision=4),
            b"\0",
            "scale 1",
        ),
        (_record(), _record({**_A_INT, "default": "x"}), b"", "the default 'x'"),
    ],
)
def test_what_cannot_be_read_as_the_readers_is_incompatible(
    writer: Any, reader: Any, value: bytes, reason: str
) -> None:
    with pytest.raises(Refused, match=reason) as refused:
        _text(writer, value, reader)
    assert refused.value.verdict == "incompatible_schema"


def test_an_import_names_types() -> None:
    inner = json.dumps({"type": "enum", "name": "a.E", "symbols": ["X"]})
    schema = Schema(AVRO, json.dumps(_record({"name": "e", "type": "a.E"})), (("a.E", inner),))
    assert AvroReader(parse_schema(schema)).decode(b"\x00") == '{"e":"X"}'


_DEEP = '{"type":' * 2000 + '"int"' + "}" * 2000


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "5", "[]{}", '"nope"', _DEEP),
        *('{"type":"record","name":"R"}', '{"type":"array"}', '{"type":"fixed","name":"F"}'),
        *('{"type":"enum","name":1,"symbols":[]}', '{"type":["int",{"type":"x"}]}'),
    ],
)
def test_a_schema_file_that_is_no_schema_is_refused_at_the_start(text: str) -> None:
    with pytest.raises(SettingsError, match="schema file x"):
        decoder("avro", schema=Schema(AVRO, text, name="schema file x"))


def test_a_value_that_is_too_large_is_not_decoded() -> None:
    limited = decoder("avro", schema=Schema(AVRO, '"string"'), max_bytes=4)
    assert limited.decode(b"\x06abc").text == '"abc"'
    assert limited.decode(b"\x08abcd").verdict == "record_too_large"
