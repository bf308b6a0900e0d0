"""The shapes of docs/shapes.md: each example in examples/shapes gives the events that it should."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.config.folders import Folder
from spark_jobs.config.settings import load_settings
from spark_jobs.contract.events import OK
from spark_jobs.formats.decoding import Decoded
from spark_jobs.formats.sources import decoders, file_sets
from spark_jobs.ingest.in_python.judge import Judge, Judgement

_CHECKOUT = Path(__file__).parents[2]
_SHAPES = _CHECKOUT / "examples/shapes"
_NOW = datetime(2026, 8, 1, tzinfo=UTC)
_NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def _judged(shape: Path) -> list[Judgement]:
    """What a run makes of the file of a shape, or of its content as the value of one record in a topic."""
    settings = load_settings(shape / "adloom.toml")
    judge, (file,) = Judge(settings), shape.glob("sample.*")
    if any(source.topics for source in settings.source.values()):
        (topic,) = settings.topics
        return judge.judge(decoders(settings, None)[topic].decode(file.read_bytes().rstrip()), _NOW, topic)
    sets = file_sets(settings, Folder.of(shape))
    of = next(one for one in sets if one.has(str(file)))
    return [
        judged
        for row in of.reader.rows(file)
        for judged in (
            judge.judge(Decoded(row.text, row.verdict, row.reason), _NOW, of.origin)
            if row.text or row.verdict
            else judge.judge(row.raw, _NOW, of.origin)
        )
    ]


def _at(seconds: float) -> datetime:
    return datetime.fromtimestamp(_NOON.timestamp() + seconds, UTC)


_Expected = list[tuple[str | None, float, dict[str, Any]]]
_VISITS: _Expected = [("1", 0, {"user_id": "a"}), ("2", 1, {"user_id": "b"})]
_ORDER = {"user_id": "23adf", "value_micros": 25_990_000, "currency": "USD", "order_id": "o1", "ip": "8.8.8.8"}
_SHOWN = {"user_id": "u1", "campaign_id": "c1", "ad_id": "a1", "ip": "192.0.2.7"}
_EXPECTED: dict[str, _Expected] = {
    "access-log": [("i1", -3600, _SHOWN), ("i2", -3599, _SHOWN)],
    "ad-manager": [
        ("CJW-1", 0.123456, {"user_id": "CAESEI8dgJM", "campaign_id": "77", "ad_id": "99", "cost_micros": 2130}),
        ("CJW-2", 5.123456, {"user_id": None, "cost_micros": None}),
    ],
    "attribution-csv": [(None, 600, {"value_micros": 9_990_000, "currency": "EUR", "user_id": "1772366400-123"})],
    "canal": [
        ("7", 0, {"user_id": "u7", "value_micros": 12_500_000, "currency": "CNY"}),
        ("8", 1.5, {"user_id": "u8", "value_micros": 1_000_000}),
    ],
    "cloudevents": [("A-1", 0.123456, {"user_id": "u1", "value_micros": 25_990_000, "currency": "EUR"})],
    "cloudfront": [("req1==", 0, _SHOWN)],
    "debezium": [("9007199254740993", 0.123456, {"user_id": "7", "value_micros": 25_950_000})],
    "excel": [("1", 0, {"user_id": "b"})],
    "firehose": _VISITS,
    "ga4": [(None, 0.123456, {"user_id": "123.456", "value_micros": 25_990_000, "currency": "EUR", "order_id": "T1"})],
    "gelf": [("1", 0.123456, {"user_id": "u", "data": "m"})],
    "gzip-members": [("1", 0, {"user_id": "a"}), ("2", 0, {"user_id": "a"})],
    "joined-log": [
        ("0-20073966", 0, {"event_type": "impression", "campaign_id": "22589171", "cost_micros": 10}),
        ("2-24607497", 2, {"event_type": "impression", "cost_micros": 10}),
        ("k-2-24607497", 2, {"event_type": "click", "impression_id": "2-24607497"}),
        ("3-28474333", 3, {"event_type": "impression", "cost_micros": 10}),
        ("k-3-28474333", 3, {"event_type": "click", "impression_id": "3-28474333"}),
        ("3063962", 1_449_193, {"event_type": "conversion", "value_micros": 210_000}),
    ],
    "json-array": _VISITS,
    "json-in-text": [("1", 0.123, {"user_id": "u"})],
    "json-schema": _VISITS[:1],
    "jwt": [("1", 0, {})],
    "latin-1": [("1", 0, {"user_id": "\u00e4"})],
    "lookup": [("1", 0, {"user_id": "u7"})],
    "minor-units": [
        ("evt_1", 0, {"value_micros": 10_990_000, "currency": "USD"}),
        ("evt_2", 0, {"value_micros": 1_099_000_000, "currency": "JPY"}),
    ],
    "mongodb": [("65e1", 0, {"user_id": "x"}), ("65e2", 0.123, {})],
    "no-header": [("b1", -401_399_933.744, {"campaign_id": "c", "ad_id": "a"})],
    "offset-minutes": [("1", -3600, {})],
    "openrtb-bids": [
        ("r1-1", 0.123, {"user_id": "u1", "campaign_id": "c1", "cost_micros": 2100}),
        ("r1-2", 0.123, {"user_id": "u1", "campaign_id": "c2", "cost_micros": 350}),
    ],
    "openrtb-seats": [
        ("r1-s1-1", 0.123, {"user_id": "u1", "campaign_id": "c1", "cost_micros": 2100}),
        ("r1-s1-2", 0.123, {"user_id": "u1", "campaign_id": "c2", "cost_micros": 350}),
        ("r1-s2-1", 0.123, {"user_id": "u1", "campaign_id": "c3", "cost_micros": 1900}),
    ],
    "padded": [("1", 0, {"user_id": "\u00e4"})],
    "pretty": _VISITS[:1],
    "query-string": [
        ("1", 0.123, {"user_id": "a@b.c"}),
        ("2", 0.123, {"user_id": "%E4bc"}),
        ("3", 0.123, {"user_id": "100%"}),
    ],
    "segment": [("ajs-f8ca", 0.323, _ORDER)],
    "segment-batch": [("ajs-f8ca", 0.323, _ORDER), ("m2", 0.323, _ORDER)],
    "utf-16": [("1", 0, {"user_id": "\u00e4"})],
    "win-notice": [
        ("r1-1", 0, {"user_id": "u+1", "campaign_id": "c1", "cost_micros": 2100}),
        ("r2-1", 0, {"user_id": "u2", "cost_micros": None}),
        ("r3-1", 0, {"user_id": "u2", "cost_micros": None}),
    ],
}
_REFUSED = {"canal": ["no_source"], "debezium": ["no_source"], "minor-units": ["invalid_value_micros"]}


@pytest.mark.parametrize("name", sorted(one.name for one in _SHAPES.iterdir()))
def test_a_shape_gives_its_events(name: str) -> None:
    judged = _judged(_SHAPES / name)
    good = [one.event for one in judged if one.verdict == OK]
    for event, (event_id, seconds, fields) in zip(good, _EXPECTED[name], strict=True):
        assert event_id in (None, event["event_id"])
        assert event["event_time"] == _at(seconds)
        assert {field: event[field] for field in fields} == fields
    assert [one.verdict for one in judged if one.verdict != OK] == _REFUSED.get(name, [])


def test_the_page_shows_each_example() -> None:
    page = (_CHECKOUT / "docs/shapes.md").read_text()
    assert sorted(set(re.findall(r"\(\.\./examples/shapes/([a-z0-9-]+)/adloom\.toml\)", page))) == sorted(_EXPECTED)
