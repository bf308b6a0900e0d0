"""Random Avro values of random schemas: fastavro writes them, ours must show exactly what was written."""

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spark_jobs.contract.events import DECODE_VERDICTS
from spark_jobs.formats.decoding import decoder
from spark_jobs.formats.schema import AVRO, Schema
from tests.support.avro_schemas import canonical, encoded, schemas, value_of

_PATIENT = settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.too_slow])


def _schema(content: Any) -> Schema:
    return Schema(AVRO, json.dumps(content))


@_PATIENT
@given(st.data(), schemas())
def test_what_was_written_is_shown(data: st.DataObject, schema: Any) -> None:
    written, shown = value_of(data.draw, schema)
    found = decoder("avro", schema=_schema(schema)).decode(encoded(schema, written))
    assert found.text is not None, found
    assert canonical(json.loads(found.text)) == canonical(shown)


@_PATIENT
@given(st.data(), schemas())
def test_changed_bytes_give_json_or_a_verdict(data: st.DataObject, schema: Any) -> None:
    value = bytearray(encoded(schema, value_of(data.draw, schema)[0]))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(value)))
        value[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=10))
    found = decoder("avro", schema=_schema(schema)).decode(bytes(value))
    if found.text is None:
        assert found.verdict in DECODE_VERDICTS
        assert found.reason
    else:
        json.loads(found.text)


@_PATIENT
@given(st.data(), schemas())
def test_a_value_that_is_cut_off_or_followed_by_more_is_refused(data: st.DataObject, schema: Any) -> None:
    value = encoded(schema, value_of(data.draw, schema)[0])
    reader = decoder("avro", schema=_schema(schema))
    assert reader.decode(value + data.draw(st.binary(min_size=1, max_size=5))).text is None
    if value:
        assert reader.decode(value[: data.draw(st.integers(0, len(value) - 1))]).verdict == "invalid_encoding"
