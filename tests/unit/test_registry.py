"""What the registry answers, and what follows: a schema, a verdict, a pause, an error."""

import json
import logging
import pickle
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest
from pydantic import SecretStr

from spark_jobs.config.sections import RegistrySettings
from spark_jobs.config.settings import load_settings
from spark_jobs.errors import LakeError, RegistryError, SettingsError
from spark_jobs.formats.decoding import Decoded, decoder
from spark_jobs.formats.refusal import Refused
from spark_jobs.formats.registry import RegistryClient
from spark_jobs.formats.schema import AVRO, PROTOBUF, Schema
from spark_jobs.formats.schema_store import SchemaStore
from spark_jobs.ingest.schemas import FilesOfLake
from spark_jobs.lake.store.local import LocalFiles
from tests.support.fake_registry import FakeRegistry
from tests.support.servers import free_port

_CANARY = "canary-55d0-password-of-registry"


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    with FakeRegistry().running() as running:
        yield running


class _Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now, self.pauses = 0.0, list[float]()

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.pauses.append(seconds)


def _client(*urls: str, clock: _Clock | None = None, **settings: Any) -> RegistryClient:
    ticking = clock or _Clock()
    return RegistryClient(RegistrySettings(url=urls, **settings), sleep=ticking.sleep, clock=lambda: ticking.now)


def _framed(number: int, value: bytes) -> bytes:
    return b"\0" + number.to_bytes(4, "big") + value


def _store(registry: FakeRegistry, lake: Path | None = None) -> SchemaStore:
    return SchemaStore(RegistrySettings(url=(registry.url,)), FilesOfLake(str(lake)) if lake else None)


def test_a_schema_comes_with_what_it_refers_to_in_order(registry: FakeRegistry) -> None:
    registry.add(7, "top", schemaType=PROTOBUF, references=[_reference("a.proto", "a/b"), _reference("c.proto", "c")])
    registry.answers["/subjects/a%2Fb/versions/1"] = (200, {"schema": "A", "references": [_reference("c.proto", "c")]})
    registry.answers["/subjects/c/versions/1"] = (200, {"schema": "C"})
    found = _client(registry.url).schema(7)
    assert found == Schema(PROTOBUF, "top", (("c.proto", "C"), ("a.proto", "A")), "schema 7")
    registry.add(8, '"int"')
    assert _client(f"{registry.url}/").schema(8).kind == AVRO


def _reference(name: str, subject: str) -> dict[str, Any]:
    return {"name": name, "subject": subject, "version": 1}


def test_what_the_registry_has_not_is_unknown(registry: FakeRegistry) -> None:
    registry.add(7, '"int"', references=[_reference("x", "gone")])
    registry.answers["/subjects/gone/versions/1"] = (404, {"error_code": 40401, "message": "Subject not found"})
    for number, reason in ((6, "the registry has no schema 6"), (7, "refers to version 1 of gone")):
        with pytest.raises(Refused, match=reason) as refused:
            _client(registry.url).schema(number)
        assert refused.value.verdict == "unknown_schema"


def test_references_in_a_circle_end(registry: FakeRegistry) -> None:
    registry.add(7, '"int"', references=[_reference("x", "x")])
    registry.answers["/subjects/x/versions/1"] = (200, {"schema": "X", "references": [_reference("x", "x")]})
    with pytest.raises(Refused, match="refers to itself"):
        _client(registry.url).schema(7)


def _hang_up(handler: BaseHTTPRequestHandler) -> None:
    handler.connection.close()


def test_a_registry_that_is_away_is_asked_again_with_growing_pauses(
    registry: FakeRegistry, caplog: pytest.LogCaptureFixture
) -> None:
    registry.add(7, '"int"')
    registry.failures = [(503, {}), (429, {}), (500, {"error_code": 50001}), _hang_up]
    clock = _Clock()
    with caplog.at_level(logging.WARNING):
        assert _client(registry.url, clock=clock).schema(7).text == '"int"'
    assert clock.pauses == [0.5, 1, 2, 4]
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 4
    assert "asking again in 0.5 s" in caplog.text


def test_another_server_of_the_registry_stands_in(registry: FakeRegistry) -> None:
    registry.add(7, '"int"')
    clock = _Clock()
    assert _client(f"http://127.0.0.1:{free_port()}", registry.url, clock=clock).schema(7).text == '"int"'
    assert clock.pauses == []


def test_patience_ends_with_an_error_that_says_what_to_do(registry: FakeRegistry) -> None:
    clock, nobody = _Clock(), f"http://127.0.0.1:{free_port()}"
    with pytest.raises(RegistryError, match=r"longer than registry\.patience 1min.*nothing is lost"):
        _client(nobody, clock=clock, patience="1min").schema(7)
    assert 30 <= clock.now <= 60
    assert max(clock.pauses) <= 30
    registry.failures = [lambda _: sleep(0.5)]
    with pytest.raises(RegistryError, match="timed out"):
        _client(registry.url, timeout="100ms", patience="0s").schema(7)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((401, {"error_code": 40101}), "refuses the user"),
        ((403, b"no"), "refuses the user"),
        ((404, b"<html>"), "HTTP 404; check that registry.url"),
        ((404, {"error_code": 404, "message": "HTTP 404 Not Found"}), "HTTP 404, HTTP 404 Not Found; check"),
        ((302, b""), "HTTP 302"),
        ((200, b"<html>"), "no schema registry"),
        ((200, [1]), "no schema registry"),
        ((200, {}), "has no schema"),
    ],
)
def test_what_waiting_does_not_mend_fails_at_once_and_quarantines_nothing(
    registry: FakeRegistry, answer: Any, reason: str
) -> None:
    clock = _Clock()
    registry.failures = [answer]
    with pytest.raises(RegistryError, match=reason):
        _client(registry.url, clock=clock).schema(7)
    assert clock.pauses == []


def test_a_redirect_does_not_take_the_password_elsewhere(registry: FakeRegistry) -> None:
    def redirect(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(301)
        handler.send_header("Location", f"{registry.url}/elsewhere")
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    registry.failures = [redirect]
    with pytest.raises(RegistryError, match="HTTP 301"):
        _client(registry.url, username="jobs", password=SecretStr(_CANARY)).schema(7)
    assert registry.asked == ["/schemas/ids/7"]


def test_the_user_is_sent_and_shown_nowhere(registry: FakeRegistry) -> None:
    registry.failures = [(401, {})]
    with pytest.raises(RegistryError) as refused:
        _client(registry.url, username="jobs", password=SecretStr(_CANARY)).schema(7)
    assert registry.logins == [f"jobs:{_CANARY}"]
    decode = decoder("avro", schemas=SchemaStore(RegistrySettings(username="jobs", password=SecretStr(_CANARY))))
    assert _CANARY not in f"{refused.value}{decode!r}{decode}"


@pytest.mark.parametrize("url", ["registry:8081", "ftp://r", "http://u:p@r", "http://r?x=1"])
def test_an_address_that_is_none_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(SettingsError, match=r"registry.url.*ADLOOM_REGISTRY__USERNAME") as refused:
        load_settings(None, {"ADLOOM_REGISTRY__URL": url})
    assert url not in str(refused.value)


def test_settings_of_the_registry_come_from_the_environment() -> None:
    environment = {
        "ADLOOM_REGISTRY__URL": "http://one:8081/, https://two/path",
        "ADLOOM_REGISTRY__USERNAME": "jobs",
        "ADLOOM_REGISTRY__PASSWORD": _CANARY,
    }
    found = load_settings(None, environment).registry
    assert found.url == ("http://one:8081", "https://two/path")
    assert found.password.get_secret_value() == _CANARY
    del environment["ADLOOM_REGISTRY__PASSWORD"]
    with pytest.raises(SettingsError, match="belong together"):
        load_settings(None, environment)


def test_a_ca_file_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("nothing")
    for name in ("ca.pem", "missing.pem"):
        with pytest.raises(SettingsError, match=r"registry\.ca_file"):
            _client("https://127.0.0.1", ca_file=tmp_path / name)


def test_each_schema_is_asked_for_once_and_kept_in_the_lake(registry: FakeRegistry, tmp_path: Path) -> None:
    registry.add(7, '"int"')
    registry.add(8, '"string"')
    decode = decoder("avro", schemas=_store(registry, tmp_path))
    values = [_framed(7, b"\x02"), _framed(8, b"\x02a")] * 3
    shown = [Decoded("1"), Decoded('"a"')] * 3
    assert [decode.decode(value) for value in values] == shown
    assert registry.asked == ["/schemas/ids/7", "/schemas/ids/8"]
    elsewhere = pickle.loads(pickle.dumps(decode))  # noqa: S301
    assert [elsewhere.decode(value) for value in values] == shown
    # Another process, when the registry is gone for good.
    gone = SchemaStore(RegistrySettings(), FilesOfLake(str(tmp_path)))
    assert [decoder("avro", schemas=gone).decode(value) for value in values] == shown
    assert len(registry.asked) == 2
    assert LocalFiles(tmp_path).names("_schemas") == ["7.json", "8.json"]


def test_garbage_is_not_asked_for_without_end(registry: FakeRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    registry.add(7, '"int"')
    decode = decoder("avro", schemas=_store(registry))
    for number in (2**31, 2**32 - 1):
        assert decode.decode(_framed(number, b"")).verdict == "unknown_schema"
    assert registry.asked == []
    found = [decode.decode(_framed(number, b"")) for number in range(1000, 3000)]
    assert {one.verdict for one in found} == {"unknown_schema"}
    assert len(registry.asked) == 100
    assert "if it has this one, requeue the record" in (decode.decode(_framed(7, b"\x02")).reason or "")
    later = monotonic() + 11
    monkeypatch.setattr("time.monotonic", lambda: later)
    assert decode.decode(_framed(7, b"\x02")).text == "1"


def test_a_schema_that_is_nowhere_is_an_error_without_a_registry(tmp_path: Path) -> None:
    with pytest.raises(RegistryError, match=r"not in the lake.*registry\.url"):
        SchemaStore(RegistrySettings(), FilesOfLake(str(tmp_path))).get(7)


def test_a_damaged_schema_in_the_lake_is_named(registry: FakeRegistry, tmp_path: Path) -> None:
    for content in (b"{", b"[]", b"{}", b"\xff"):
        LocalFiles(tmp_path).write("_schemas/7.json", content)
        with pytest.raises(LakeError, match=r"_schemas/7\.json in the lake is damaged"):
            _store(registry, tmp_path).get(7)


def test_an_unknown_schema_is_asked_for_again_after_a_while(
    registry: FakeRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    decode = decoder("avro", schemas=_store(registry))
    value = _framed(9, b"\x02")
    assert [decode.decode(value).verdict for _ in range(3)] == ["unknown_schema"] * 3
    assert len(registry.asked) == 1
    registry.add(9, '"int"')
    later = monotonic() + 11
    monkeypatch.setattr("time.monotonic", lambda: later)
    assert decode.decode(value).text == "1"


@pytest.mark.parametrize(
    ("value", "verdict", "reason"),
    [
        (b"", "invalid_encoding", "is empty"),
        (b'{"event_type":', "invalid_encoding", "begins with the byte 123"),
        (b"\0\0\0\0", "invalid_encoding", "ends after 4 bytes, within the id"),
        (_framed(1, b""), "invalid_encoding", "ends early"),
        (_framed(1, b"\x02\x02"), "invalid_encoding", "1 bytes follow"),
        (_framed(2, b""), "incompatible_schema", "schema 2 is of the type JSON, not AVRO"),
        (_framed(3, b""), "incompatible_schema", "schema 3 is not JSON"),
        (_framed(4, b"\x02a"), "incompatible_schema", "string cannot be read as long"),
        (_framed(2**32 - 1, b"\x02"), "unknown_schema", "names schema 4294967295, and the ids of a registry end at"),
    ],
)
def test_a_bad_value_gets_a_verdict_and_a_reason(
    registry: FakeRegistry, value: bytes, verdict: str, reason: str
) -> None:
    registry.add(1, '"int"')
    registry.add(2, "{}", schemaType="JSON")
    registry.add(3, "{")
    registry.add(4, '"string"')
    decode = decoder("avro", schemas=_store(registry), schema=Schema(AVRO, '"long"'))
    for _ in range(2):
        found = decode.decode(value)
        assert (found.text, found.verdict) == (None, verdict)
        assert reason in str(found.reason)
    assert decode.decode(_framed(1, b"\x02")).text == "1"


_PROTO = (
    'syntax = "proto3"; package p; message A { int32 a = 1; message B { int32 b = 1; } } message C { int32 c = 1; }'
)


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (b"\0", '{"a":1}'),
        (b"\x02\0", '{"a":1}'),
        (b"\x02\x02", '{"c":1}'),
        (b"\x04\0\0", '{"b":1}'),
        (b"\x02\x04", None),
        (b"\x02\x01", None),
        (b"\x04\0", None),
        (b"\x01", None),
        (b"\xfe\xff\x01", None),
        (b"", None),
    ],
)
def test_the_indexes_choose_the_message(registry: FakeRegistry, place: bytes, text: str | None) -> None:
    registry.add(5, _PROTO, schemaType=PROTOBUF)
    found = decoder("protobuf", schemas=_store(registry)).decode(_framed(5, place + b"\x08\x01"))
    assert (found.text, found.verdict) == (text, None if text else "invalid_encoding")


def test_a_message_that_is_named_in_the_settings_wins_over_the_indexes(registry: FakeRegistry) -> None:
    registry.add(5, _PROTO, schemaType=PROTOBUF)
    decode = decoder("protobuf", schemas=_store(registry), message="C")
    assert decode.decode(_framed(5, b"\x04\0\0\x08\x01")).text == '{"c":1}'


def test_a_reader_schema_of_protobuf_takes_the_place_of_the_writers(registry: FakeRegistry) -> None:
    registry.add(5, _PROTO, schemaType=PROTOBUF)
    mine = Schema(
        PROTOBUF, 'syntax = "proto3"; package p; message C { int64 renamed = 1; }', name="schema file c.proto"
    )
    decode = decoder("protobuf", schemas=_store(registry), schema=mine)
    assert decode.decode(_framed(5, b"\x02\x02\x08\x01")).text == '{"renamed":1}'
    refused = decode.decode(_framed(5, b"\0\x08\x01"))
    assert (refused.verdict, refused.reason) == ("incompatible_schema", "schema file c.proto has no message p.A")


def test_the_lake_keeps_what_was_fetched(registry: FakeRegistry, tmp_path: Path) -> None:
    registry.add(7, '"int"', references=[_reference("x", "x")])
    registry.answers["/subjects/x/versions/1"] = (200, {"schema": '"string"'})
    _store(registry, tmp_path).get(7)
    stored = json.loads((tmp_path / "_schemas" / "7.json").read_text())
    assert stored == {"type": "AVRO", "schema": '"int"', "imports": [["x", '"string"']], "name": "schema 7"}
