"""Protobuf by hand: a .proto file, bytes on the wire, and the JSON text that they must give."""

import base64
import json
import struct
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_jobs.contract.events import DECODE_VERDICTS
from spark_jobs.errors import SettingsError
from spark_jobs.formats.decoding import Decoder, decoder
from spark_jobs.formats.proto_schema import CompiledSchema
from spark_jobs.formats.refusal import Refused
from spark_jobs.formats.schema import PROTOBUF, Schema, read_schema

_PROTO = """
syntax = "proto3";
package ads.v1;
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/wrappers.proto";
import "google/protobuf/struct.proto";
import "confluent/meta.proto";

enum Kind { KIND_UNKNOWN = 0; KIND_CLICK = 1; }
message Event {
  message Inner { int32 a = 1; message Deep { bool x = 1; } map<string, int32> m = 3; message Second { bool y = 1; } }
  Kind kind = 1;
  string userId = 2 [(confluent.field_meta).doc = "who"];
  int64 cost_micros = 3;
  bool is_last = 4;
  optional string data = 5;
  bytes blob = 6;
  google.protobuf.Timestamp at = 7;
  repeated int32 numbers = 8;
  map<string, double> shares = 9;
  oneof place { string city = 10; uint64 cell = 11; }
  Inner inner = 12;
  Event parent = 13;
  google.protobuf.Duration took = 14;
  google.protobuf.Int64Value wrapped = 15;
  google.protobuf.Struct extra = 16;
  float share = 17;
  map<bool, Kind> kinds = 18;
}
message Other { fixed64 id = 1; }
"""
_DEFAULTS = {
    "kind": "KIND_UNKNOWN",
    "userId": "",
    "cost_micros": 0,
    "is_last": False,
    "blob": "",
    "numbers": [],
    "shares": {},
    "share": 0.0,
    "kinds": {},
}


@cache
def _decoder(text: str = _PROTO, message: str = "") -> Decoder:
    return decoder("protobuf", schema=Schema(PROTOBUF, text), message=message)


def _shown(value: bytes) -> Any:
    found = _decoder().decode(value)
    assert found.text is not None, found
    return json.loads(found.text)


def test_a_field_without_presence_is_there_with_its_default() -> None:
    assert _shown(b"") == _DEFAULTS


@pytest.mark.parametrize(
    ("value", "field", "shown"),
    [
        (b"\x08\x01", "kind", "KIND_CLICK"),
        (b"\x08\x63", "kind", 99),
        (b'\x12\x04u"\xc3\xbc', "userId", 'u"ü'),
        (b"\x18" + b"\xff" * 9 + b"\x01", "cost_micros", -1),
        (b"\x18" + b"\xff" * 8 + b"\x7f", "cost_micros", 2**63 - 1),
        (b"\x20\x01", "is_last", True),
        (b"\x2a\x00", "data", ""),
        (b"\x32\x02\x00\xff", "blob", "AP8="),
        (b"\x3a\x00", "at", "1970-01-01T00:00:00Z"),
        (b"\x3a\x04\x08\x01\x10\x01", "at", "1970-01-01T00:00:01Z"),
        (b"\x3a\x06\x08\x01\x10\xc0\x84\x3d", "at", "1970-01-01T00:00:01.001000Z"),
        (b"\x3a\x0b\x08" + b"\xff" * 9 + b"\x01", "at", "1969-12-31T23:59:59Z"),
        (b"\x3a\x0a\x08" + b"\xff" * 8 + b"\x7f", "at", {"seconds": 2**63 - 1, "nanos": 0}),
        (b"\x42\x02\x01\x02", "numbers", [1, 2]),
        (b"\x40\x05", "numbers", [5]),
        (b"\x4a\x0c\x0a\x01a\x11" + struct.pack("<d", 0.25), "shares", {"a": 0.25}),
        (b"\x52\x01x", "city", "x"),
        (b"\x58" + b"\xff" * 9 + b"\x01", "cell", 2**64 - 1),
        (b"\x62\x00", "inner", {"a": 0, "m": {}}),
        (b"\x72\x08\x08\x01\x10\x80\xca\xb5\xee\x01", "took", "1.5s"),
        (b"\x7a\x02\x08\x07", "wrapped", 7),
        (b"\x82\x01\x09\x0a\x07\x0a\x01k\x12\x02\x20\x01", "extra", {"k": True}),
        (b"\x8d\x01" + struct.pack("<f", float("inf")), "share", "Infinity"),
        (b"\x92\x01\x04\x08\x01\x10\x01", "kinds", {"true": "KIND_CLICK"}),
        (b"\x6a\x02\x20\x01", "parent", {**_DEFAULTS, "is_last": True}),
        (b"\xf8\x3f\x01\x20\x01", "is_last", True),
    ],
)
def test_a_field_is_shown_as(value: bytes, field: str, shown: Any) -> None:
    assert _shown(value) == {**_DEFAULTS, field: shown}


@pytest.mark.parametrize(
    "value",
    [
        b"\xff",
        b"\x08",
        b"\x12\x05ab",
        b"\x12\x02\xff\xfe",
        b"\x0b",
        b"{}",
        b"\x3a\x01\x08",
        b"\x6a\x02" * 200 + b"\x00",
    ],
)
def test_bytes_that_are_no_message_get_a_verdict(value: bytes) -> None:
    found = _decoder().decode(value)
    assert (found.text, found.verdict) == (None, "invalid_encoding")
    assert "no message ads.v1.Event" in str(found.reason)


@settings(deadline=None, max_examples=300)
@given(st.binary(max_size=60))
def test_any_bytes_give_json_or_a_verdict(value: bytes) -> None:
    found = _decoder().decode(value)
    if found.text is None:
        assert found.verdict in DECODE_VERDICTS
    else:
        json.loads(found.text)


def test_messages_within_each_other_up_to_the_limit_of_protobuf_itself() -> None:
    value = b""
    for _ in range(40):
        size = len(value)
        value = b"\x6a" + (bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7])) + value
    shown, depth = _shown(value), 0
    while "parent" in shown:
        shown, depth = shown["parent"], depth + 1
    assert depth == 40


def test_a_text_of_proto2_that_is_not_utf8_gets_a_verdict() -> None:
    text = 'syntax = "proto2"; message M { required string s = 1; optional int32 n = 2 [default = 5]; }'
    assert _decoder(text).decode(b"\x0a\x01a").text == '{"s":"a"}'
    assert _decoder(text).decode(b"\x0a\x02\xff\xfe").verdict == "invalid_encoding"
    assert _decoder(text).decode(b"").verdict == "invalid_encoding"


def test_the_place_of_a_message_as_producers_count_it() -> None:
    compiled = CompiledSchema(Schema(PROTOBUF, _PROTO))
    places: dict[tuple[int, ...], str] = {(0,): "Event", (1,): "Other", (0, 0): "Event.Inner"}
    # The entries of the map m are a message too, which lies between the two that are declared. Java does not count it.
    places |= {(0, 0, 0): "Event.Inner.Deep", (0, 0, 1): "Event.Inner.Second", (0, 0, 2): "Event.Inner.Second"}
    assert {place: compiled.at(place).full_name for place in places} == {
        place: f"ads.v1.{name}" for place, name in places.items()
    }
    for place in ((2,), (-1,), (0, 1), (0, 0, 3), (0, 0, 0, 0)):
        with pytest.raises(Refused, match="has no message at the indexes"):
            compiled.at(place)


def test_a_place_that_means_two_messages_is_refused_until_one_is_named() -> None:
    text = 'syntax = "proto3"; message P { map<int32, int32> m = 1; message X {} message Y {} }'
    compiled = CompiledSchema(Schema(PROTOBUF, text, name="schema 7"))
    with pytest.raises(Refused, match=r"indexes \[0, 1\] in schema 7 mean P\.X or P\.Y") as refused:
        compiled.at((0, 1))
    assert refused.value.verdict == "incompatible_schema"
    assert [compiled.at((0, index)).full_name for index in (0, 2)] == ["P.X", "P.Y"]


def test_a_schema_that_was_registered_as_a_descriptor() -> None:
    # Confluent's client for Python sends descriptors in base64, and not every registry turns them to text.
    kind = descriptor_pb2.FileDescriptorProto(name="made/up.proto", package="ads", syntax="proto3")
    kind.enum_type.add(name="Kind").value.add(name="NONE", number=0)
    main = descriptor_pb2.FileDescriptorProto(name="m.proto", package="ads", syntax="proto3")
    main.dependency.extend(["ads/kind.proto", "google/protobuf/timestamp.proto", "text.proto"])
    message = main.message_type.add(name="M")
    message.field.add(name="kind", number=1, type=14, type_name=".ads.Kind", label=1)
    message.field.add(name="at", number=2, type=11, type_name=".google.protobuf.Timestamp", label=1)
    message.field.add(name="t", number=3, type=11, type_name=".T", label=1)
    texts = [base64.b64encode(one.SerializeToString()).decode() for one in (kind, main)]
    plain = ("text.proto", 'syntax = "proto3"; message T { bool x = 1; }')
    schema = Schema(PROTOBUF, texts[1], (("ads/kind.proto", texts[0]), plain))
    shown = decoder("protobuf", schema=schema).decode(b"\x12\x02\x08\x01\x1a\x00").text
    assert shown == '{"kind":"NONE","at":"1970-01-01T00:00:01Z","t":{"x":false}}'


def test_a_message_is_chosen_by_its_name() -> None:
    value = b"\x09" + bytes(range(1, 9))
    for name in ("Other", "ads.v1.Other"):
        assert _decoder(message=name).decode(value).text == f'{{"id":{0x0807060504030201}}}'
    with pytest.raises(SettingsError, match="has no message Another"):
        _decoder(message="Another")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("message", "does not compile"),
        ('syntax = "proto3"; import "nowhere.proto"; message M {}', "nowhere.proto"),
        ('syntax = "proto3";', "has no message"),
    ],
)
def test_a_schema_that_does_not_compile_is_refused_at_the_start(text: str, reason: str) -> None:
    with pytest.raises(SettingsError, match=reason):
        _decoder(text)


def test_an_import_cannot_leave_its_folder() -> None:
    schema = Schema(PROTOBUF, 'syntax = "proto3"; message M {}', (("../evil.proto", 'syntax = "proto3";'),))
    with pytest.raises(SettingsError, match="no relative path"):
        decoder("protobuf", schema=schema)


def test_a_schema_file_brings_what_it_imports(tmp_path: Path) -> None:
    (tmp_path / "ads" / "common").mkdir(parents=True)
    (tmp_path / "ads" / "event.proto").write_text(
        'syntax = "proto3"; /* import "no.proto"; */ import "ads/common/kind.proto"; message E { ads.Kind k = 1; }'
    )
    (tmp_path / "ads" / "common" / "kind.proto").write_text(
        'syntax = "proto3"; package ads; import public "ads/common/base.proto"; enum Kind { A = 0; B = 1; }'
    )
    (tmp_path / "ads" / "common" / "base.proto").write_text('syntax = "proto3";')
    schema = read_schema(tmp_path / "ads" / "event.proto")
    assert [name for name, _ in schema.imports] == ["ads/common/base.proto", "ads/common/kind.proto"]
    assert decoder("protobuf", schema=schema).decode(b"\x08\x01").text == '{"k":"B"}'
    assert Schema.from_json(schema.to_json()) == schema
