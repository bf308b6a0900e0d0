"""Values in the wire format, by a real schema registry: references, new schemas, TLS, and a registry that goes away."""

import json
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme

from spark_jobs.config.sections import RegistrySettings
from spark_jobs.errors import RegistryError
from spark_jobs.formats import decoding
from spark_jobs.formats.decoding import Decoded, Decoder, decoder
from spark_jobs.formats.schema import AVRO, Schema
from spark_jobs.formats.schema_store import SchemaStore
from spark_jobs.ingest.schemas import FilesOfLake
from tests.stack.certificates import kafka_pem
from tests.stack.registry import Registry
from tests.support.avro_schemas import encoded

pytestmark = pytest.mark.stack
_EVENT = {"type": "record", "name": "Event", "fields": [{"name": "id", "type": "string"}]}
_LATER = {**_EVENT, "fields": [*_EVENT["fields"], {"name": "cost", "type": ["null", "long"], "default": None}]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("registry")


@pytest.fixture(scope="module")
def registry(folder: Path) -> Iterator[Registry]:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "authority.pem")
    certificate = authority.issue_cert("127.0.0.1")
    certificate.cert_chain_pems[0].write_to_path(folder / "certificate.pem")
    (folder / "key.pem").write_bytes(kafka_pem(certificate))
    server = Registry(folder / "server", certificate=folder / "certificate.pem", key=folder / "key.pem")
    server.start()
    yield server
    server.stop()


def _decoder(registry: Registry, lake: Path | None = None, format_: str = "avro", **settings: Any) -> Decoder:
    used = RegistrySettings(**{"url": (registry.url,), "timeout": "5s", **settings})
    return decoder(format_, schemas=SchemaStore(used, FilesOfLake(str(lake)) if lake else None))


def _framed(number: int, value: bytes) -> bytes:
    return b"\0" + number.to_bytes(4, "big") + value


def _value(number: int, schema: Any, **fields: Any) -> bytes:
    return _framed(number, encoded(schema, fields))


def test_a_new_schema_in_the_middle_and_one_that_is_unknown(registry: Registry) -> None:
    first = registry.register("middle", _EVENT)
    decode = _decoder(registry)
    assert decode.decode(_value(first, _EVENT, id="a")).text == '{"id":"a"}'
    second = registry.register("middle", _LATER)
    assert second != first
    values = [_value(second, _LATER, id="b", cost=7), _value(first, _EVENT, id="c"), _framed(10**6, b"")]
    assert [decode.decode(value).text for value in values] == ['{"id":"b","cost":7}', '{"id":"c"}', None]
    refused = decode.decode(values[2])
    assert (refused.verdict, refused.reason) == ("unknown_schema", "the registry has no schema 1000000")


@pytest.mark.slow
def test_a_reader_schema_fills_what_an_older_writer_did_not_know(registry: Registry) -> None:
    number = registry.register("reader", _EVENT)
    mine = Schema(AVRO, json.dumps(_LATER))
    decode = decoder("avro", schemas=SchemaStore(RegistrySettings(url=(registry.url,))), schema=mine)
    assert decode.decode(_value(number, _EVENT, id="a")).text == '{"id":"a","cost":null}'


@pytest.mark.slow
def test_references_of_avro(registry: Registry) -> None:
    kind = {"type": "enum", "name": "ads.Kind", "symbols": ["IMPRESSION", "CLICK"]}
    inner = {"type": "record", "name": "ads.Inner", "fields": [{"name": "kind", "type": "ads.Kind"}]}
    outer = {"type": "record", "name": "ads.Outer", "fields": [{"name": "inner", "type": "ads.Inner"}]}
    registry.register("kind", kind)
    registry.register("inner", inner, "AVRO", ("ads.Kind", "kind", 1))
    number = registry.register("outer", outer, "AVRO", ("ads.Inner", "inner", 1))
    assert _decoder(registry).decode(_framed(number, b"\x02")).text == '{"inner":{"kind":"CLICK"}}'


def test_references_and_message_indexes_of_protobuf(registry: Registry) -> None:
    registry.register("kind.proto", 'syntax = "proto3"; package ads; enum Kind { NONE = 0; CLICK = 1; }', "PROTOBUF")
    text = """
        syntax = "proto3";
        package ads;
        import "ads/kind.proto";
        import "google/protobuf/timestamp.proto";
        message Other { bool x = 1; }
        message Event { Kind kind = 1; google.protobuf.Timestamp at = 2; }
    """
    number = registry.register("event.proto", text, "PROTOBUF", ("ads/kind.proto", "kind.proto", 1))
    decode = _decoder(registry, format_="protobuf")
    value = b"\x08\x01\x12\x04\x08\x01\x10\x00"
    assert decode.decode(_framed(number, b"\x02\x02" + value)).text == '{"kind":"CLICK","at":"1970-01-01T00:00:01Z"}'
    assert decode.decode(_framed(number, b"\0")).text == '{"x":false}'
    assert decode.decode(_framed(number, b"\x02\x04")).verdict == "invalid_encoding"


@pytest.mark.slow
def test_tls_by_its_authority_alone(registry: Registry, folder: Path) -> None:
    value = _value(registry.register("tls", _EVENT), _EVENT, id="a")
    trusting = _decoder(registry, url=(registry.secure_url,), ca_file=folder / "authority.pem")
    assert trusting.decode(value).text == '{"id":"a"}'
    with pytest.raises(RegistryError, match=r"not trusted.*registry\.ca_file"):
        _decoder(registry, url=(registry.secure_url,)).decode(value)


@pytest.mark.slow
def test_a_path_that_is_no_registrys_is_an_error(registry: Registry) -> None:
    wrong = registry.url.removesuffix("/apis/ccompat/v7")
    with pytest.raises(RegistryError, match=r"check (that )?registry\.url"):
        _decoder(registry, url=(wrong,)).decode(_framed(1, b""))


@pytest.mark.slow
def test_a_registry_that_is_killed_and_comes_back_loses_nothing(registry: Registry, tmp_path: Path) -> None:
    numbers = []
    for n in range(40):
        schema = {**_EVENT, "fields": [*_EVENT["fields"], {"name": f"n{n}", "type": "int"}]}
        numbers.append((registry.register(f"killed-{n}", schema), schema, n))
    values = [_value(number, schema, id="a", **{f"n{n}": n}) for number, schema, n in numbers]
    decode, found = _decoder(registry, tmp_path, timeout="1s", patience="2min"), list[Decoded]()

    def work() -> None:
        for value in values:
            found.append(decode.decode(value))
            time.sleep(0.02)

    worker = threading.Thread(target=work)
    worker.start()
    while len(found) < 5:
        time.sleep(0.01)
    registry.stop(signal.SIGKILL)
    time.sleep(2)
    decoded_while_away = len(found)
    registry.start()
    worker.join(60)
    assert decoded_while_away < len(values), "the registry was away too late to matter"
    assert [one.text for one in found] == [f'{{"id":"a","n{n}":{n}}}' for n in range(40)]


@pytest.mark.slow
def test_the_lake_is_read_again_when_the_registry_is_gone_for_good(
    registry: Registry, folder: Path, tmp_path: Path
) -> None:
    server = Registry(folder / "other")
    server.start()
    number = server.register("gone", _EVENT)
    value = _value(number, _EVENT, id="a")
    assert _decoder(server, tmp_path).decode(value).text == '{"id":"a"}'
    server.stop(signal.SIGKILL)
    decoding._readers.clear()
    away = _decoder(server, tmp_path, patience="1s")
    assert away.decode(value).text == '{"id":"a"}'
    with pytest.raises(RegistryError, match="has been away for"):
        away.decode(_framed(number + 1, b""))
    assert registry.url != server.url
