"""Records that hold several events, and rows that are several: each, and also."""

import base64
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from spark_jobs.config.settings import Settings
from spark_jobs.contract.events import OK
from spark_jobs.ingest.in_python.judge import Judge
from tests.spark.test_verdict_agreement import assert_agreement, run_rarely
from tests.support.mappings import records as random_records

_RECEIVED = datetime(2026, 8, 1, tzinfo=UTC)
_SENT = 1_767_268_800_000


def _in_list(event_type: str, more: dict[str, str], **settings: Any) -> dict[str, Any]:
    common = {"event_id": "$.id", "event_time": "timestamp_millis($$.sent)", "user_id": "$$.user.id"}
    return {"event_type": f"'{event_type}'", "map": common | more, **settings}


_SOURCES = {
    "imps": _in_list(
        "impression",
        {"campaign_id": "$.c", "ad_id": "$.a[0]", "cost_micros": "micros($.price)"},
        each="$.events",
        when="$.kind = 'imp' and $$.test is null",
        also="acts, buys",
        keep={"batch": {"from": "$$.batch"}},
    ),
    "acts": _in_list("activity", {"event_id": "concat('a-', $.id)", "data": "$$"}, when="$.seen = 'true'"),
    "buys": _in_list(
        "conversion",
        {"conversion_type": "$.id", "value_micros": "$.worth", "currency": "'EUR'"},
        when="$.worth > 0",
    ),
    "clicks": _in_list("click", {"impression_id": "$.i"}, each="$.events", when="$.kind = 'clk'"),
    "hits": _in_list("activity", {"user_id": "$.u", "data": "$.price"}, each="$.lists[?name='hits'].of"),
    "whole": {
        "event_type": "'activity'",
        "when": "$.kind = 'act'",
        "map": {"event_id": "$.id", "event_time": "timestamp_millis($.sent)", "user_id": "$.user.id", "data": "$"},
    },
}
_SETTINGS = Settings.model_validate({"source": _SOURCES})
_OF_BATCH = {"event_id": "$.id", "event_time": "timestamp_seconds($.at)", "user_id": "'u'", "impression_id": "$.i"}
_IMPRESSION = {"kind": "imp", "id": "i", "c": 7, "a": ["x", "y"], "price": 0.5, "seen": True, "worth": 3}
_CLICK = {"kind": "clk", "id": "k", "i": "i"}


def _record(events: object, **more: object) -> dict[str, object]:
    return {"sent": _SENT, "user": {"id": "u"}, "batch": [1, {"b": 2.5}], "events": events, **more}


_RECORDS: list[object] = [
    _record([_IMPRESSION, _CLICK]),
    _record([_IMPRESSION | {"seen": False}, _IMPRESSION | {"worth": 0, "id": 8}, _CLICK]),
    _record([_CLICK, 5, "x", None, True, [1], [], {}, "", " ", json.dumps(_CLICK), f" {json.dumps(_CLICK)}\t"]),
    _record([]),
    _record(None),
    _record("x"),
    _record({"0": _CLICK}),
    _record([_IMPRESSION], test=1),
    _record([_IMPRESSION], sent="yesterday"),
    _record([_IMPRESSION], user={"id": 7.5}),
    _record([_IMPRESSION], user={"id": 12345678901234567890}),
    _record([_IMPRESSION], user={}),
    _record([], kind="act", id="w"),
    {"kind": "act", "id": "w", "sent": _SENT, "user": {"id": "u"}},
    {"kind": "other"},
    _record([], lists=[{"name": "x", "of": [1]}, {"name": "hits", "of": [{"id": "h", "u": "v", "price": 1.50}]}]),
    _record([_CLICK], lists=[{"name": "hits", "of": [{"id": "h", "u": "v"}]}]),
    [_IMPRESSION],
    "text",
]
_TEXTS = [
    *('{"sent": 1767268800000, "user": {"id": 1e3}, "events": [{"kind": "clk", "id": "k", "i": 1e3}]}',),
    *('{"sent": 1767268800000, "user": {"id": "u"}, "events": [{"kind": "clk", "id": 1, "id": 2, "i": "x"}]}',),
    *('{"events": [{"kind": "clk"}], "events": [{"kind": "clk"}]}', '{"events": [{"kind": "clk"}]} x', '{"events": ['),
    *('{"events": [{"kind": "clk", "id": "\\ud800"}]}', '{"events": [{"kind": "imp", "price": 1e400}, {"id": "1e5"}]}'),
    (
        '{"sent": 1767268800000, "user": {"id": "u"}, "events": [{"kind": "imp", "id": "p", "c": "c", "a": ["a"], '
        '"price": 8.5e-05}, {"kind": "imp", "id": 0.1234567890123456789012345678901234567890, "c": 1, "a": [2]}]}'
    ),
]


def _lines() -> list[bytes]:
    return [*(json.dumps(one).encode() for one in _RECORDS), *(text.encode() for text in _TEXTS)]


def test_both_engines_take_records_apart_alike(spark: SparkSession, tmp_path: Path) -> None:
    assert_agreement(spark, _lines(), _SETTINGS, tmp_path)


_LISTS = Settings.model_validate(
    {"source": {"batches": _SOURCES["clicks"] | {"each": "$", "map": _OF_BATCH}, "others": _SOURCES["whole"]}}
)


def test_a_record_may_be_the_list_itself(spark: SparkSession, tmp_path: Path) -> None:
    """As a batch of CloudEvents is."""
    texts = [
        *(
            '[{"kind": "clk", "id": "k", "at": 1772366400, "i": "i"}, {"kind": "clk", "id": "l", "at": "x", "i": 2}]',
            "[]",
            "[ ]",
        ),
        *(
            "[1, null, [], {}]",
            "[[{}]]",
            '[{"kind": "clk"}] x',
            '[{"kind": "clk"}',
            "[" * 200,
            '["\\ud800"]',
            '[{"a": 1, "a": 2}]',
        ),
        *('{"kind": "act", "id": "w", "sent": 1767268800000, "user": {"id": "u"}}', '[{"kind": "clk", "id": 1e400}]'),
    ]
    assert_agreement(spark, [text.encode() for text in texts], _LISTS, tmp_path)
    places = [(one.place, one.verdict) for one in Judge(_LISTS).judge(texts[0].encode(), _RECEIVED)]
    assert places == [("[0]", OK), ("[1]", "invalid_event_time")]


_BID = {"event_id": "concat($$$.id, '-', $$.seat, '-', $.id)", "event_time": "timestamp_millis($$$.sent)"}
_WITHIN = Settings.model_validate(
    {
        "source": {
            "bids": {
                "each": "$.seats[*].bids",
                "event_type": "'impression'",
                "also": "seen",
                "map": _BID
                | {
                    "user_id": "$body.user",
                    "campaign_id": "$.c",
                    "ad_id": "$$.seat",
                    "cost_micros": "micros($.price)",
                },
                "let": {"body": "$$$.body"},
                "keep": {"seat": {"from": "$$"}, "batch": {"from": "$$$.body"}},
            },
            "seen": {"when": "$.seen", "event_type": "'activity'", "map": _BID | {"user_id": "'u'", "data": "$$$"}},
            "deep": {
                "each": "$[*].of[?k='x'].rows[*]",
                "event_type": "'activity'",
                "map": {"event_id": "$.id", "event_time": "timestamp_millis($$$[0].sent)", "user_id": "$$.rows"},
            },
            "lists": {
                "each": "$.grid[*][*]",
                "event_type": "'activity'",
                "map": {"event_id": "$.id", "event_time": "timestamp_millis($$$.sent)", "user_id": "'u'", "data": "$$"},
            },
            "three": {
                "each": "$.users[*].visits[*].hits",
                "event_type": "'activity'",
                "map": {
                    "event_id": "concat($$$.id, '-', $$.n, '-', $.id)",
                    "event_time": "timestamp_millis($$$.sent)",
                    "user_id": "coalesce($.u, 'none')",
                    "data": "$$",
                },
            },
            "one": {
                "each": "$.events",
                "event_type": "'activity'",
                "map": {"event_id": "$.id", "event_time": "timestamp_millis($$.sent)", "user_id": "'u'", "data": "$$"},
            },
            "whole": _SOURCES["whole"] | {"when": "$.id is not null"},
        }
    }
)


def _bids(*seats: object, **more: object) -> dict[str, object]:
    return {"id": "r", "sent": _SENT, "body": '{"user": "u"}', "seats": list(seats), **more}


_SEAT = {"seat": "s", "bids": [{"id": 1, "c": 1, "price": 1.50, "seen": True}, {"id": 2, "c": "", "price": 8.5e-5}]}
_WITHIN_RECORDS: list[object] = [
    _bids(_SEAT, _SEAT | {"seat": 2}),
    _bids(_SEAT, _SEAT, body="none"),
    _bids({"seat": "s"}, _SEAT, {"seat": "s", "bids": []}, {"bids": {}}, 7, None, "x", [_SEAT], json.dumps(_SEAT)),
    _bids({"seat": "s", "bids": [1, None, {}, [], "x", json.dumps(_SEAT["bids"][0])]}),
    _bids(),
    _bids(seats=None),
    _bids(grid=[[{"id": 1}, {"id": 2}], [], [{"id": 3}, 4], {"id": 5}, [[{"id": 6}]]]),
    [
        {"sent": _SENT, "of": [{"k": "y"}, {"k": "x", "rows": [{"id": 1}]}]},
        {"of": [{"k": "x", "rows": [{"id": 2}]}]},
        3,
    ],
    [[_SEAT]],
    _bids(
        users=[
            {"visits": [{"n": 1, "hits": [{"id": 1}, {"id": 2, "u": "u"}]}, {"n": 2}, {"n": 3, "hits": [{"id": 3}]}]}
        ]
    ),
    _bids(users=[{"visits": []}, 5, {"visits": [5, {"n": 1, "hits": [{}]}]}]),
    _bids(events=[{"id": 1, "seats": [_SEAT], "seat": "own"}, {"id": 2}]),
]
_WITHIN_TEXTS = [
    '{"id": "r", "sent": 1767268800000, "seats": [{"seat": 1e5, "seat": 2, "bids": [{"id": 1e3}]}]}',
    '{"id": "r", "sent": 1767268800000, "seats": [{"seat": 1e5, "bids": [{"id": 1e3, "c": 1e400, "price": 1e-5}]}]}',
]


def test_both_engines_take_lists_within_lists_apart_alike(spark: SparkSession, tmp_path: Path) -> None:
    lines = [*(json.dumps(one).encode() for one in _WITHIN_RECORDS), *(text.encode() for text in _WITHIN_TEXTS)]
    assert_agreement(spark, lines, _WITHIN, tmp_path)


def test_each_element_of_a_list_within_a_list_is_an_event() -> None:
    """``$$`` is the element around it, and ``$$$`` the record around all."""
    found = Judge(_WITHIN).judge(json.dumps(_bids(_SEAT, {"seat": "e"}, _SEAT | {"seat": "t"})).encode(), _RECEIVED)
    assert [(one.place, one.verdict) for one in found] == [
        ("[0][0]", OK),
        ("[0][0]+seen", OK),
        ("[0][1]", "invalid_campaign_id"),
        ("[1]", "no_source"),
        ("[2][0]", OK),
        ("[2][0]+seen", OK),
        ("[2][1]", "invalid_campaign_id"),
    ]
    first, *_, last, _ = (one.event for one in found if one.verdict == OK)
    assert (first["event_id"], first["user_id"], first["ad_id"], first["cost_micros"]) == ("r-s-1", "u", "s", 1_500_000)
    assert last["event_id"] == "r-t-1"


@pytest.mark.slow
@run_rarely
@given(st.lists(st.tuples(st.lists(random_records, max_size=4), random_records), min_size=100, max_size=100))
def test_random_elements(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, drawn: list[tuple[list[str], str]]
) -> None:
    texts = [f'{{"events": [{", ".join(elements)}], "user": {user}, "sent": {_SENT}}}' for elements, user in drawn]
    records = list(dict.fromkeys(text.encode() for text in texts if "\n" not in text))
    assert_agreement(spark, records, _SETTINGS, tmp_path_factory.mktemp("random"))
    seats = [f'{{"seats": [{{"bids": [{", ".join(elements)}]}}, {one}], "sent": {_SENT}}}' for elements, one in drawn]
    records = list(dict.fromkeys(text.encode() for text in seats if "\n" not in text))
    assert_agreement(spark, records, _WITHIN, tmp_path_factory.mktemp("within"))


def test_each_element_is_an_event() -> None:
    (first, acts, buys, second) = Judge(_SETTINGS).judge(json.dumps(_RECORDS[0]).encode(), _RECEIVED)
    assert [one.place for one in (first, acts, buys, second)] == ["[0]", "[0]+acts", "[0]+buys", "[1]"]
    assert {one.verdict for one in (first, acts, buys, second)} == {OK}
    assert (first.event["cost_micros"], first.kept["batch"]) == (500_000, '[1,{"b":2.5}]')
    assert (acts.event["event_id"], buys.event["value_micros"], second.event["impression_id"]) == ("a-i", 3, "i")


def test_a_record_without_its_list_says_so() -> None:
    (judged,) = Judge(_SETTINGS).judge(json.dumps(_record([])).encode(), _RECEIVED)
    assert (judged.verdict, judged.source, judged.place) == ("no_source", None, "")
    assert judged.reason == "it has no list with elements at $.events or $.lists[?name='hits'].of"


_LENIENT = Settings.model_validate(
    {
        "source": {
            "ads": {
                "event_type": "$.type",
                "let": {"body": "unbase64($.body)", "more": "$.more"},
                "lenient": "cost_micros, ip, position, order_id",
                "map": {
                    "event_id": "$body.id",
                    "event_time": "parse_time($body.at[0])",
                    "user_id": "$more.user",
                    "campaign_id": "'c'",
                    "ad_id": "$more[1]",
                    "cost_micros": "micros($body.price)",
                    "ip": "$.ip",
                    "data": "$body",
                    "conversion_type": "'sale'",
                    "value_micros": "0",
                    "order_id": "$body.order",
                },
                "keep": {"position": {"from": "$more.position", "type": "bigint"}, "place": {"from": "$more"}},
            },
            "others": {
                "event_type": "'activity'",
                "let": {"body": "$.text"},
                "map": {"event_id": "$body.id", "event_time": "$.at", "user_id": "$.u"},
            },
        }
    }
)


def test_what_is_left_out_and_texts_that_are_records(spark: SparkSession, tmp_path: Path) -> None:
    bodies = [
        {"id": "a", "at": [1772366400123], "price": 0.5},
        {"id": 7, "at": ["2026-03-01 12:00 UTC"], "price": -1, "order": ""},
        {"id": "b", "at": ["2026-03-01T12:00:00.123456789+0100"], "price": 1e-7, "order": "o"},
        {"id": "c", "at": [1772366400], "price": "free"},
    ]
    records = [
        {"type": kind, "body": base64.urlsafe_b64encode(json.dumps(body).encode()).decode().rstrip("="), **more}
        for kind in ("impression", "click", "activity", "conversion")
        for body in bodies
        for more in (
            {"more": {"user": "u", "position": 1}, "ip": "::1"},
            {"more": '{"user": "u", "position": "first"}', "ip": True},
            {"more": '["u", "x"] '},
            {"more": '{"user": "u"} x'},
            {},
        )
    ]
    records += [{"type": "impression", "body": "?"}, {"text": '{"id": 1}', "at": "2026-03-01", "u": "u"}]
    assert_agreement(spark, [json.dumps(one).encode() for one in records], _LENIENT, tmp_path)
    judged = [one for record in records for one in Judge(_LENIENT).judge(json.dumps(record).encode(), _RECEIVED)]
    assert any(one.verdict == OK and one.reason.count("; ") == 2 for one in judged)
    assert {one.verdict for one in judged} >= {OK, "missing_event_id", "missing_user_id"}
