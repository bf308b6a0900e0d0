"""Each field of each type of event with every value that JSON can carry: no value stops a query or is lost."""

import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import SparkSession

from spark_jobs.config.settings import Settings
from spark_jobs.contract.events import (
    ACTIVITY,
    AMOUNT_LIMITS,
    CLICK,
    COMMON_FIELDS,
    CONVERSION,
    EVENT_TYPES,
    IMPRESSION,
    MAX_ID_CHARACTERS,
    OK,
    TEXT_LIMITS,
    TYPE_FIELDS,
)
from spark_jobs.contract.tables import BRONZE_EVENTS, SILVER_EVENTS
from spark_jobs.ingest.in_python.judge import Judge
from spark_jobs.lake.open import open_lake
from spark_jobs.queries.registry import TABLES
from tests.support.equality import assert_lake_equals_oracle
from tests.support.lakes import read_table
from tests.support.lateness import PATIENT
from tests.support.runs import run_in
from tests.support.verdicts import judge

pytestmark = [pytest.mark.derived, pytest.mark.slow]

_START: Final = datetime(2026, 3, 1, 12, tzinfo=UTC)
_STEP: Final = timedelta(seconds=2)
_LENGTHS: Final = (MAX_ID_CHARACTERS, *TEXT_LIMITS.values(), 10_000)
_NUMBERS: Final = (
    *(limit + step for limit in AMOUNT_LIMITS.values() for step in (-1, 0, 1)),
    *(sign * 2**bits + step for bits in (31, 53, 63) for sign in (-1, 1) for step in (-1, 0, 1)),
)
_TIMES: Final = (
    *("1969-12-31T23:59:59.999999Z", "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000001Z"),
    *("1999-12-31T23:59:59.999999Z", "2000-01-01T00:00:00Z", "2000-01-01T00:00:00.000001Z"),
    *("2000-01-01T00:59:59+01:00", "1999-12-31T23:00:00-01:00", "2024-02-29T23:59:59.999999+18:00"),
    *("0001-01-01T00:00:00Z", "2099-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "12024-05-01T12:00:00Z"),
)
_TEXTS: Final = (
    *("", " ", "x", "NaN", "Infinity", "null", "true", "0", "-1", "1e300", "EUR", "eur", "{}", "[]", *EVENT_TYPES),
    *(
        "heartbeat",
        "\ufeff",
        "\uffff",
        "\U0010ffff",
        "e\u0301",
        "\u202e",
        "\u00e9",
        "\u2028",
        "\x7f",
        "a/b=c%2F",
        "'\"\\",
    ),
    *_TIMES,
    *(letter * (length + more) for length in _LENGTHS for letter in "x\U0001f600" for more in (0, 1)),
)
_VALUES: Final = (
    *("null", "true", "false", "[]", "{}", "[null]", '["x"]', '{"a": {"b": []}}', "[" * 999 + "]" * 999),
    *("0", "-0", "1", "-1", "0.0", "1.0", "1.5", "1e3", "1e300", "-1e300", "1e-300", "1e400", "NaN", "-Infinity"),
    *("9" * 64, "9" * 65, "9" * 128, "9" * 129, "9" * 400),
    *(str(number) for number in _NUMBERS),
    *(json.dumps(text, ensure_ascii=False) for text in _TEXTS),
    *(rf'"\u{code:04x}"' for code in (*range(32), 0x7F, 0x80, 0xD800, 0xDBFF, 0xDC00, 0xDFFF, 0xFFFE)),
    *(r'"\ud83d\ude00"', r'"\ude00\ud83d"', r'"\ud800x"'),
    *(f'"a{chr(code)}b"' for code in range(32) if chr(code) != "\n"),
)
"""As JSON text; some is none."""
_RAW: Final = (b'"\xff"', b'"\xc0\xaf"', b'"\xed\xa0\x80"', b'"\xf4\x90\x80\x80"')
"""Text that is not UTF-8."""

_OWN: Final[dict[str, dict[str, object]]] = {
    IMPRESSION: {"campaign_id": "c1", "ad_id": "a1", "cost_micros": 250},
    CLICK: {"impression_id": "i1"},
    ACTIVITY: {"data": "page"},
    CONVERSION: {"conversion_type": "purchase", "value_micros": 7, "currency": "EUR", "order_id": "o", "revokes": "q"},
}


def _event(event_type: str, number: int) -> dict[str, bytes]:
    """A good event, by field its JSON text; one of the same user and campaign follows the other."""
    fields = {
        "event_type": event_type,
        "event_id": f"{event_type[0]}{number}",
        "event_time": (_START + number * _STEP).isoformat(),
        "user_id": "u1",
        "is_last": False,
        "ip": "192.0.2.7",
        "user_agent": "Mozilla/5.0",
        **_OWN[event_type],
    }
    return {name: json.dumps(value).encode() for name, value in fields.items()}


def _record(fields: dict[str, bytes]) -> bytes:
    return b"{" + b", ".join(b'"%s": %s' % (name.encode(), text) for name, text in fields.items()) + b"}"


def _records() -> Iterator[bytes]:
    number = 1
    for event_type in EVENT_TYPES:
        yield _record(_event(event_type, number))
    for event_type in EVENT_TYPES:
        for field in (*COMMON_FIELDS, *TYPE_FIELDS[event_type]):
            own = _event(event_type, 0)[field]
            for value in (*(text.encode() for text in _VALUES), *_RAW, own):
                number += 1
                yield _record(_event(event_type, number) | {field: value})
            number += 1
            fields = _event(event_type, number)
            yield _record({name: text for name, text in fields.items() if name != field})


def test_no_value_of_a_field_stops_a_query_or_is_lost(spark: SparkSession, tmp_path: Path) -> None:
    settings, lake, source = Settings.model_validate(PATIENT), open_lake(str(tmp_path / "lake")), tmp_path / "source"
    now, own = datetime.now(UTC), Judge(settings)
    due, records, keys = Counter[tuple[str, str]](), list[bytes](), set[object]()
    for record in _records():
        (judged,), expected = own.judge(record, now), judge(record, receipt=now, ingest=settings.ingest)
        key = expected.event and expected.event[:2]
        if key is None or key not in keys:  # of two events of one id in a batch, Spark keeps any
            due[expected.raw, judged.verdict] += 1
            records.append(record)
            keys.add(key)
    source.mkdir()
    (source / "records.jsonl").write_bytes(b"\n".join(records))
    run_in(spark, settings, lake, source, measure=True)

    raw, verdict = (BRONZE_EVENTS.column_names.index(name) for name in ("raw", "verdict"))
    found = Counter((row[raw], row[verdict]) for row in read_table(lake, BRONZE_EVENTS))
    assert found - due == due - found == Counter()
    assert_lake_equals_oracle(lake, source, settings)
    accepted = sum(count for (_, verdict), count in found.items() if verdict == OK)
    assert len(records) > accepted > len(records) / 4, "both are well covered"
    assert all(read_table(lake, table) for table in TABLES)
    assert len({verdict for _, verdict in found}) > 30
    assert len(read_table(lake, SILVER_EVENTS)) > 1000
